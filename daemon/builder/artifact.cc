// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/artifact.h"

#include <set>
#include <string>
#include <utility>

#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "common/wire/artifact_texts.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/plan/toolchain_paths.h"

namespace kernix::build {
namespace {

absl::Status Unusable(std::string_view why) {
  return MakeError(v1::ErrorDetail::COMPILATION,
                   StrCat("the link succeeded, but its output is unusable: ", why,
                          " (does a flag change what is built, or which symbols it exports?)"));
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

// Why the build may have read other content than the file has now; empty if it cannot have.
std::string WhyUnsure(const absl::StatusOr<toolchain::FileDigests::Content>& content, const BuildStart& start) {
  if (!content.ok()) return std::string(content.status().message());
  if (content->since <= start.monotonic) return "";
  if (content->identity.SettledAt(start.unix_ms)) return "";
  return "it was changed during the build, or its time stamp is ahead of this machine's clock";
}

// The digest of what the build has certainly read, otherwise a digest that matches no content.
Digest DigestSince(toolchain::FileDigests& digests, const std::string& path, const BuildStart& start) {
  const absl::StatusOr<toolchain::FileDigests::Content> content = digests.GetContent(path);
  const std::string why = WhyUnsure(content, start);
  if (why.empty()) return content->digest;
  Log(LogLevel::kWarning, "header_not_recorded",
      {{"path", path}, {"reason", why}, {"effect", "the next load of this entry builds it again"}});
  return Digest();
}

// `path` without "..". If `path` contains links, the text alone may name another place.
std::string ResolveDots(Env& env, const std::string& path) {
  const std::string normal = NormalizePath(path);
  if (normal == path) return path;
  return IsSameFile(env, path, normal) ? normal : env.RealPath(path).value_or(path);
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
    unit.set_text(*units[i]);
  }
  for (const KeptFile& file : kept) {
    v1::KeptText& text = *texts.add_kept();
    text.set_kind(file.kind);
    text.set_unit(static_cast<uint32_t>(file.unit));
    text.set_architecture(file.architecture);
    text.set_text(*outputs.at(file.path));
  }
  return texts;
}

absl::StatusOr<std::string> WithTexts(const std::string& linked, const v1::ArtifactTexts& texts, uint64_t limit) {
  const uint64_t size = linked.size() + texts.ByteSizeLong();
  if (limit > 0 && size > limit) {
    return MakeError(v1::ErrorDetail::RESOURCE,
                     StrCat("the library and its texts have ", size, " bytes; kernixd allows ", limit,
                            " for the files of a load (max_output_bytes): load without `keep`, or for fewer "
                            "architectures"));
  }
  std::string artifact = linked;
  const absl::Status added = AddTexts(texts, artifact);
  if (!added.ok()) return Unusable(ToStd(added.message()));
  return artifact;
}

std::vector<cache::ToolchainHeader> DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests,
                                                           const toolchain::Toolchain& toolchain,
                                                           const std::vector<std::string_view>& dependency_files,
                                                           const BuildStart& start) {
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  std::set<std::string> paths;
  for (const std::string_view file : dependency_files) {
    for (const std::string& path : HeadersOutsideRoot(file)) paths.insert(ResolveDots(env, path));
  }
  std::vector<cache::ToolchainHeader> headers;
  for (const std::string& path : paths) {
    headers.push_back({PortablePath(folders, path), DigestSince(digests, path, start)});
  }
  return headers;
}

std::optional<std::string> ChangedToolchainHeader(toolchain::FileDigests& digests,
                                                  const toolchain::Toolchain& toolchain, const cache::Entry& entry) {
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  for (const cache::ToolchainHeader& header : entry.toolchain_headers) {
    const std::string path = LocalPath(folders, header.path);
    if (path.empty()) return header.path;
    const absl::StatusOr<Digest> digest = digests.Get(path);
    if (!digest.ok() || *digest != header.digest) return path;
  }
  return std::nullopt;
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
