// SPDX-License-Identifier: Apache-2.0
//
// Files outside the sources that flags name.
#pragma once

#include <string>
#include <vector>

#include "common/os/env.h"

namespace kernix {

struct FlagFiles {
  std::vector<std::string> files;    // objects, libraries, profiles: those that are there. Absolute
  std::vector<std::string> folders;  // of -L, in order
};

// What `compile_flags` and `link_flags` (as they are sent to the daemon) name. Of a library that is named without its
// folder, each file of that name in a folder of -L.
FlagFiles FindFlagFiles(Env& env, const std::vector<std::string>& compile_flags,
                        const std::vector<std::string>& link_flags);

}  // namespace kernix
