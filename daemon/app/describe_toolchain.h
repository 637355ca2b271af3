// SPDX-License-Identifier: Apache-2.0
//
// kernixd --describe-toolchain.
#pragma once

#include "common/os/env.h"
#include "daemon/app/options.h"

namespace kernix::server {

// Writes the description, and says on stdout what it describes, or on stderr what is wrong. Returns a KernixdExit.
int DescribeTools(Env& env, const DescriptionTask& task);

}  // namespace kernix::server
