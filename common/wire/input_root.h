// SPDX-License-Identifier: Apache-2.0
//
// Names in a build's input root that diagnostics show, and that the client turns back into the user's paths.
#pragma once

namespace kernix {

// Holds the include roots, by index.
inline constexpr char kIncludeRootsFolder[] = "inc";

// An include root lies in as many of these, one in the other, as its headers climb above it: with `"../x.h"`, root 0 is
// "inc/0/.up", and the header "inc/0/x.h".
inline constexpr char kClimbFolder[] = ".up";

// How many that can be.
inline constexpr int kMaxClimb = 16;

}  // namespace kernix
