// SPDX-License-Identifier: Apache-2.0
//
// The folders in which a load's headers are looked up, and the lookup.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/os/env.h"

namespace kernix {

struct IncludeRoot {
  std::string folder;        // absolute
  bool only_quoted = false;  // a source's own folder: `#include <x>` does not look there
};

// A file by its place below a root: what the daemon is told of it.
struct RootedPath {
  uint32_t root = 0;
  std::string path;  // normalised; may begin with "..", up to kMaxClimb times

  bool operator<(const RootedPath& other) const { return std::tie(root, path) < std::tie(other.root, other.path); }
};

// The roots of a load: the sources' folders, then the include paths; each folder once, and only folders that are there
// and that are none of `toolchain_folders`.
std::vector<IncludeRoot> MakeIncludeRoots(Env& env, const std::vector<std::string>& source_folders,
                                          const std::vector<std::string>& include_paths,
                                          const std::vector<std::string>& toolchain_folders);

// Where `name` leads from `folder`, seen from root `root`. Nothing when that is no file, or too far above the root.
std::optional<RootedPath> PlaceOf(uint32_t root, std::string_view folder, std::string_view name);

// The folders that `name` goes into on its way from `folder` only to leave them again, seen from the root:
// "a/../b.h" goes through "a". They have to be there, since it is the kernel that walks.
std::vector<std::string> FoldersPassed(std::string_view folder, std::string_view name);

// All header-like files under the roots, at most `limit` + 1 of them.
std::vector<RootedPath> ListHeaders(Env& env, const std::vector<IncludeRoot>& roots, size_t limit);

}  // namespace kernix
