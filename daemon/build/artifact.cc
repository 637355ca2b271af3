// SPDX-License-Identifier: Apache-2.0
#include "daemon/build/artifact.h"

#include <string>
#include <utility>

#include "daemon/base/error.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/build/dependency_file.h"
#include "daemon/build/elf_image.h"
#include "daemon/build/toolchain_paths.h"

namespace kernix::build {
namespace {

absl::Status Unusable(std::string_view why) {
  return MakeError(v1::ErrorDetail::COMPILATION,
                   StrCat("the link succeeded, but what it made is of no use: ", why,
                          " (does a flag change what is built, or which symbols it exports?)"));
}

absl::Status CheckHandlers(const ElfImage& image, const std::vector<codegen::FunctionSpec>& functions) {
  const auto exported = image.ExportedSymbols();
  if (!exported.ok()) return Unusable(ToStd(exported.status().message()));
  for (const codegen::FunctionSpec& function : functions) {
    if (!exported->contains(function.HandlerSymbol())) {
      return Unusable(StrCat("it does not export ", function.HandlerSymbol()));
    }
  }
  return absl::OkStatus();
}

constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;

// The digest of what the build has certainly read, else one of nothing.
Digest DigestSince(Env& env, toolchain::FileDigests& digests, const std::string& path, int64_t build_started_unix_ms) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  if (!info.ok() || info->ctime_ns / kNanosecondsPerMillisecond > build_started_unix_ms) return Digest();
  return digests.Get(path).value_or(Digest());
}

}  // namespace

absl::StatusOr<std::vector<std::string>> InspectArtifact(std::string_view artifact,
                                                         const std::vector<codegen::FunctionSpec>& functions) {
  const absl::StatusOr<ElfImage> image = ElfImage::Parse(artifact);
  if (!image.ok()) return Unusable(ToStd(image.status().message()));
  KERNIX_RETURN_IF_ERROR(CheckHandlers(*image, functions));
  const absl::StatusOr<std::vector<std::string>> versions = image->NeededVersions();
  if (!versions.ok()) return Unusable(ToStd(versions.status().message()));
  return NewestRuntimeVersions(*versions);
}

std::vector<cache::ToolchainHeader> DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests,
                                                           const toolchain::Toolchain& toolchain,
                                                           std::string_view dependency_file,
                                                           int64_t build_started_unix_ms) {
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  std::vector<cache::ToolchainHeader> headers;
  for (const std::string& path : HeadersOutsideRoot(dependency_file)) {
    headers.push_back({PortablePath(folders, path), DigestSince(env, digests, path, build_started_unix_ms)});
  }
  return headers;
}

bool ToolchainHeadersUnchanged(toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                               const cache::Entry& entry) {
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  for (const cache::ToolchainHeader& header : entry.toolchain_headers) {
    const std::string path = LocalPath(folders, header.path);
    if (path.empty()) return false;
    const absl::StatusOr<Digest> digest = digests.Get(path);
    if (!digest.ok() || *digest != header.digest) return false;
  }
  return true;
}

std::vector<v1::ResolvedFunction> ResolvedFunctions(const std::vector<codegen::FunctionSpec>& functions) {
  std::vector<v1::ResolvedFunction> resolved;
  for (const codegen::FunctionSpec& function : functions) {
    v1::ResolvedFunction& added = resolved.emplace_back();
    added.set_name(function.name);
    for (const std::string& token : function.Tokens()) added.add_tokens(token);
    added.set_handler_symbol(function.HandlerSymbol());
  }
  return resolved;
}

}  // namespace kernix::build
