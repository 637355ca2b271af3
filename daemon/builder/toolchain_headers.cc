// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/toolchain_headers.h"

#include <set>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/os/file_identity.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/plan/tool_paths.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

// Why the build may have read other content than the file has now; empty if it cannot have.
std::string WhyUnsure(const absl::StatusOr<toolchain::FileDigests::Content>& content, const BuildStart& start) {
  if (!content.ok()) return std::string(content.status().message());
  if (content->since <= start.monotonic) return "";
  if (content->identity.SettledAt(start.unix_ms)) return "";
  return "it was changed during the build, or its time stamp is ahead of this machine's clock";
}

// The headers that the build has certainly read.
std::optional<toolchain::FileDigests::Content> ContentSince(toolchain::FileDigests& digests, const std::string& path,
                                                            const BuildStart& start) {
  const absl::StatusOr<toolchain::FileDigests::Content> content = digests.GetContent(path);
  const std::string why = WhyUnsure(content, start);
  if (why.empty()) return *content;
  Log(LogLevel::kWarning, "header_not_recorded",
      {{"path", path}, {"reason", why}, {"effect", "the next load of this entry builds it again"}});
  return std::nullopt;
}

// `path` without "..". If `path` contains links, the text alone may name another place.
std::string ResolveDots(Env& env, const std::string& path) {
  const std::string normal = NormalizePath(path);
  if (normal == path) return path;
  return IsSameFile(env, path, normal) ? normal : env.RealPath(path).value_or(path);
}

// A worker has read them. What they hold, the description says; none is a file of this machine.
HeadersRead DescribedHeaders(toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                             const std::set<std::string>& paths) {
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  HeadersRead read{.headers = {}, .states = std::vector<WatchedFile>()};
  for (const std::string& path : paths) {
    const absl::StatusOr<Digest> digest = toolchain::DigestOfPart(toolchain, digests, path);
    read.headers.push_back({PortablePath(folders, path), digest.value_or(Digest())});
    if (!digest.ok()) read.states.reset();
  }
  return read;
}

// Of all headers outside the root.
template <typename Spelling>
std::set<std::string> PathsOf(const std::vector<std::string_view>& dependency_files, Spelling spelling) {
  std::set<std::string> paths;
  for (const std::string_view file : dependency_files) {
    for (const std::string& path : HeadersOutsideRoot(file)) paths.insert(spelling(path));
  }
  return paths;
}

}  // namespace

HeadersRead DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                                   const std::vector<std::string_view>& dependency_files, const BuildStart& start) {
  if (toolchain.described != nullptr) {
    return DescribedHeaders(digests, toolchain, PathsOf(dependency_files, NormalizePath));
  }
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  const auto paths = PathsOf(dependency_files, [&](const std::string& path) { return ResolveDots(env, path); });
  HeadersRead read{.headers = {}, .states = std::vector<WatchedFile>()};
  for (const std::string& path : paths) {
    const std::optional<toolchain::FileDigests::Content> content = ContentSince(digests, path, start);
    read.headers.push_back({PortablePath(folders, path), content ? content->digest : Digest()});
    if (!content) read.states.reset();
    if (read.states) read.states->push_back({path, content->identity});
  }
  return read;
}

std::optional<std::string> ChangedToolchainHeader(toolchain::FileDigests& digests,
                                                  const toolchain::Toolchain& toolchain,
                                                  const std::vector<cache::ToolchainHeader>& headers,
                                                  std::vector<WatchedFile>& states) {
  if (toolchain.described != nullptr && toolchain.described->of_store) return std::nullopt;  // they are not here
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  for (const cache::ToolchainHeader& header : headers) {
    const std::string path = LocalPath(folders, header.path);
    if (path.empty()) return header.path;
    const absl::StatusOr<Digest> digest = toolchain::DigestOfPart(toolchain, digests, path, &states);
    if (!digest.ok() || *digest != header.digest) return path;
  }
  return std::nullopt;
}

}  // namespace kernix::build
