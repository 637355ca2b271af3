// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/toolchain_paths.h"

#include <algorithm>
#include <map>
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
  // GCC applies the last map that matches, and so do we: the innermost folder. The order is part of the key, so it must
  // not depend on where a folder lies.
  std::map<std::string, size_t> depths;
  for (const NamedFolder& folder : folders) {
    depths[folder.path] = std::count_if(folders.begin(), folders.end(), [&](const NamedFolder& other) {
      return other.path != folder.path && IsBelow(folder.path, other.path);
    });
  }
  std::stable_sort(folders.begin(), folders.end(),
                   [&](const NamedFolder& a, const NamedFolder& b) { return depths.at(a.path) < depths.at(b.path); });
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
