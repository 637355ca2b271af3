// SPDX-License-Identifier: Apache-2.0
//
// Names in a build's input root that appear in diagnostics. The client translates them back to the user's paths.
#pragma once

#include <string_view>

namespace kernix {

// Contains the include roots, named by index.
inline constexpr char kIncludeRootsFolder[] = "inc";

// An include root is nested in one such folder for each level that its headers climb above it: with `"../x.h"`, root 0
// is "inc/0/.up", and the header is "inc/0/x.h".
inline constexpr char kClimbFolder[] = ".up";

// The most levels that an include root may be nested.
inline constexpr int kMaxClimb = 16;

// Removes all leading "../" of a header's path, and returns their number.
inline int TakeClimbs(std::string_view& path) {
  int climbs = 0;
  for (; path.starts_with("../"); path.remove_prefix(3)) ++climbs;
  return climbs;
}

}  // namespace kernix
