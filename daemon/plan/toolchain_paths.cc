// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/toolchain_paths.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/paths.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

void AddFolders(std::vector<NamedFolder>& folders, const std::vector<std::string>& paths, std::string_view name) {
  for (size_t i = 0; i < paths.size(); ++i) folders.push_back({NormalizePath(paths[i]), StrCat(name, "-", i)});
}

}  // namespace

std::vector<NamedFolder> ToolchainFolders(const toolchain::Toolchain& toolchain) {
  std::vector<NamedFolder> folders;
  AddFolders(folders, toolchain.host.system_include_directories, "kernix-host");
  if (toolchain.cuda.has_value()) {
    folders.push_back({NormalizePath(toolchain.cuda->root), "kernix-cuda"});
    AddFolders(folders, toolchain.cuda->include_directories, "kernix-cuda-include");
  }
  // GCC applies the last map that matches, and so do we: the innermost folder.
  std::stable_sort(folders.begin(), folders.end(),
                   [](const NamedFolder& a, const NamedFolder& b) { return a.path.size() < b.path.size(); });
  return folders;
}

std::string PortablePath(const std::vector<NamedFolder>& folders, const std::string& path) {
  const std::string normal = NormalizePath(path);
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    if (IsBelow(normal, folder->path)) return StrCat(folder->name, normal.substr(folder->path.size()));
  }
  return normal;
}

std::string LocalPath(const std::vector<NamedFolder>& folders, const std::string& path) {
  if (absl::StartsWith(path, "/")) return path;
  for (const NamedFolder& folder : folders) {
    if (IsBelow(path, folder.name)) return StrCat(folder.path, path.substr(folder.name.size()));
  }
  return "";
}

}  // namespace kernix::build
