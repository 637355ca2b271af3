// SPDX-License-Identifier: Apache-2.0
//
// The folders to search for a load's headers, and the search.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/os/env.h"

namespace kernix {

struct IncludeRoot {
  std::string folder;        // absolute
  bool only_quoted = false;  // a source's own folder, which `#include <x>` does not search
};

// A file's path below a root, as the daemon sees it.
struct RootedPath {
  uint32_t root = 0;
  std::string path;  // normalised; may begin with "..", up to kMaxClimb times

  bool operator<(const RootedPath& other) const { return std::tie(root, path) < std::tie(other.root, other.path); }
};

// The roots of a load: the sources' folders, then the include paths. Each folder appears once; folders that do not
// exist and those in `toolchain_folders` are omitted.
std::vector<IncludeRoot> MakeIncludeRoots(Env& env, const std::vector<std::string>& source_folders,
                                          const std::vector<std::string>& include_paths,
                                          const std::vector<std::string>& toolchain_folders);

// Where `name` leads to from `folder`, as seen from root `root`. Returns nullopt if it is not a file, or is
// too far above the root.
std::optional<RootedPath> RootedPathOf(uint32_t root, std::string_view folder, std::string_view name);

// The folders, as seen from the root, that `name` enters from `folder` and leaves again: "a/../b.h" passes through "a".
// They must exist, because the kernel walks through them.
std::vector<std::string> FoldersPassed(std::string_view folder, std::string_view name);

// All header-like files under the roots, at most `limit` + 1 of them. Adds the folders that it lists to `searched`.
std::vector<RootedPath> ListHeaders(Env& env, const std::vector<IncludeRoot>& roots, size_t limit,
                                    std::set<std::string>& searched);

}  // namespace kernix
