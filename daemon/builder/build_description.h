// SPDX-License-Identifier: Apache-2.0
//
// Says to people how something was built.
#pragma once

#include <string>
#include <vector>

#include "daemon/request/request.h"

namespace kernix::build {

// The settings of a build as a compiler or kernixctl takes them, and its flags, but no definitions of macros.
std::vector<std::string> DescribeFlags(const BuildRequest& request);

// The definitions, flags and settings of a build. Shortens long texts and long lists, and says so.
std::vector<std::string> DescribeBuild(const BuildRequest& request);

}  // namespace kernix::build
