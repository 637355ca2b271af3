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

// GCC applies the last map that matches, and so do we: the innermost folder. The order is part of the key, so it must
// not depend on where a folder lies.
std::vector<NamedFolder> OutermostFirst(std::vector<NamedFolder> folders) {
  std::vector<std::pair<int64_t, size_t>> order;  // number of folders around it, index
  for (size_t i = 0; i < folders.size(); ++i) {
    const std::string& path = folders[i].path;
    const auto is_around = [&path](const NamedFolder& other) { return IsBelow(path, other.path); };
    order.emplace_back(std::count_if(folders.begin(), folders.end(), is_around), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<NamedFolder> sorted;
  sorted.reserve(folders.size());
  for (const auto& [around, index] : order) sorted.push_back(std::move(folders[index]));
  return sorted;
}

}  // namespace

std::vector<NamedFolder> ToolchainFolders(const toolchain::Toolchain& toolchain) {
  std::vector<NamedFolder> folders;
  AddFolders(folders, toolchain.host.system_include_directories, "kernix-host");
  if (toolchain.cuda.has_value()) {
    folders.push_back({NormalizePath(toolchain.cuda->root), "kernix-cuda"});
    AddFolders(folders, toolchain.cuda->include_directories, "kernix-cuda-include");
  }
  return OutermostFirst(std::move(folders));
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
