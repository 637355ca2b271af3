// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/artifact.h"

#include <string>
#include <utility>

#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/artifact_texts.h"

namespace kernix::build {
namespace {

absl::Status Unusable(std::string_view why) {
  return MakeError(v1::ErrorDetail::COMPILATION, StrCat("the link succeeded, but its output is unusable: ", why,
                                                        " (does a flag change the output, or the exported symbols?)"));
}

absl::Status CheckHandlers(const ElfImage& image, const std::vector<language::FunctionSpec>& functions) {
  const auto exported = image.ExportedSymbols();
  if (!exported.ok()) return Unusable(ToStd(exported.status().message()));
  for (const language::FunctionSpec& function : functions) {
    if (!exported->contains(function.HandlerSymbol())) {
      return Unusable(StrCat("it does not export ", function.HandlerSymbol()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> InspectArtifact(std::string_view artifact,
                                                         const std::vector<language::FunctionSpec>& functions) {
  const absl::StatusOr<ElfImage> image = ElfImage::Parse(artifact);
  if (!image.ok()) return Unusable(ToStd(image.status().message()));
  KERNIX_RETURN_IF_ERROR(CheckHandlers(*image, functions));
  const absl::StatusOr<std::vector<std::string>> versions = image->NeededVersions();
  if (!versions.ok()) return Unusable(ToStd(versions.status().message()));
  return NewestRuntimeVersions(*versions);
}

v1::ArtifactTexts TextsFor(const BuildRequest& request, const std::vector<exec::Content>& units,
                           const std::vector<KeptFile>& kept, const PlanOutputs& outputs) {
  v1::ArtifactTexts texts;
  for (size_t i = 0; i < request.units.size(); ++i) {
    v1::GeneratedUnit& unit = *texts.add_unit();
    for (const language::SourceText& source : request.units[i].sources) unit.add_source(source.label);
    unit.set_language(request.units[i].language);
    unit.set_text(std::string(*units[i]));
  }
  for (const KeptFile& file : kept) {
    v1::KeptText& text = *texts.add_kept();
    text.set_kind(file.kind);
    text.set_unit(static_cast<uint32_t>(file.unit));
    text.set_architecture(file.architecture);
    text.set_text(std::string(*outputs.at(file.path)));
  }
  return texts;
}

absl::StatusOr<std::string> WithTexts(std::string_view linked, const v1::ArtifactTexts& texts, uint64_t limit) {
  const uint64_t size = linked.size() + texts.ByteSizeLong();
  if (limit > 0 && size > limit) {
    return MakeError(v1::ErrorDetail::RESOURCE,
                     StrCat("the library and its texts have ", size, " bytes; kernixd allows ", limit,
                            " for the files of a load (max_output_bytes): load without `keep`, or for fewer "
                            "architectures"));
  }
  std::string artifact(linked);
  const absl::Status added = AddTexts(texts, artifact);
  if (!added.ok()) return Unusable(ToStd(added.message()));
  return artifact;
}

std::vector<cache::Function> ResolvedFunctions(const std::vector<language::FunctionSpec>& functions) {
  std::vector<cache::Function> resolved;
  for (const language::FunctionSpec& function : functions) {
    resolved.push_back(
        {function.name, function.Tokens(), function.HandlerSymbol(), function.ParameterNames(), function.is_global});
  }
  return resolved;
}

}  // namespace kernix::build
