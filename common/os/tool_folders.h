// SPDX-License-Identifier: Apache-2.0
//
// Which folders a tool needs to see when it runs enclosed, beside those of the system (see daemon/spawn/README.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/os/env.h"

namespace kernix {

// The installations of `programs` (a program's own files lie below the folder that contains its "bin"), by the paths
// given and behind their links, and the folders that `environment` lists. Sorted. All of /usr is there for all tools,
// and is left out.
std::vector<std::string> ToolFolders(Env& env, const std::vector<std::string>& programs,
                                     const std::map<std::string, std::string>& environment);

}  // namespace kernix
