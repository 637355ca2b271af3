// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "client/kernixctl/command.h"

namespace kernix::ctl {

// The page kernixctl(1), from the texts of `root`, which is all of kernixctl.
std::string Manual(const Command& root);

}  // namespace kernix::ctl
