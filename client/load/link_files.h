// SPDX-License-Identifier: Apache-2.0
//
// Files outside of the sources that flags name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/os/env.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct FlagFiles {
  std::vector<std::string> files;  // objects, libraries, plugins; only existing files, absolute
  std::set<std::string> folders;   // the folders of -L
};

// The files that `compile_flags` and `link_flags` (as sent to the daemon) name. If a library is named without its
// folder, every file with that name in a -L folder is included.
FlagFiles FindFlagFiles(Env& env, v1::Language language, const std::vector<std::string>& compile_flags,
                        const std::vector<std::string>& link_flags);

}  // namespace kernix
