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

namespace {

v1::Parameter::Role RoleOf(language::ParameterKind kind) {
  switch (kind) {
    case language::ParameterKind::kArgument:
    case language::ParameterKind::kOptionalArgument:
    case language::ParameterKind::kArguments:
      return v1::Parameter::ARGUMENT;
    case language::ParameterKind::kResult:
    case language::ParameterKind::kResults:
      return v1::Parameter::RESULT;
    case language::ParameterKind::kAttribute:
      return v1::Parameter::ATTRIBUTE;
    case language::ParameterKind::kArgumentToken:
      return v1::Parameter::ARGUMENT_TOKEN;
    case language::ParameterKind::kResultToken:
      return v1::Parameter::RESULT_TOKEN;
    case language::ParameterKind::kStream:
    case language::ParameterKind::kDeviceOrdinal:
    case language::ParameterKind::kScratch:
      return v1::Parameter::PROVIDED;
  }
  return v1::Parameter::ROLE_UNSPECIFIED;
}

v1::Parameter ParameterOf(const language::Parameter& parameter) {
  v1::Parameter proto;
  proto.set_role(RoleOf(parameter.kind));
  const bool is_attribute = parameter.kind == language::ParameterKind::kAttribute;
  proto.set_name(is_attribute ? parameter.attribute_name : parameter.declared_name);
  proto.set_type(parameter.TypeName());
  if (parameter.rank != language::kAnyRank) proto.set_rank(static_cast<uint32_t>(parameter.rank));
  proto.set_optional(parameter.has_default || parameter.kind == language::ParameterKind::kOptionalArgument);
  proto.set_variadic(parameter.kind == language::ParameterKind::kArguments ||
                     parameter.kind == language::ParameterKind::kResults);
  return proto;
}

}  // namespace

std::vector<v1::ResolvedFunction> ResolvedFunctions(const std::vector<language::FunctionSpec>& functions) {
  std::vector<v1::ResolvedFunction> resolved;
  for (const language::FunctionSpec& function : functions) {
    v1::ResolvedFunction& proto = resolved.emplace_back();
    proto.set_name(function.name);
    for (const std::string& token : function.Tokens()) proto.add_tokens(token);
    proto.set_handler_symbol(function.HandlerSymbol());
    proto.set_is_global(function.is_global);
    for (const language::Parameter& parameter : function.parameters) *proto.add_parameter() = ParameterOf(parameter);
  }
  return resolved;
}

}  // namespace kernix::build
