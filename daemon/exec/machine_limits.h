// SPDX-License-Identifier: Apache-2.0
//
// The share of the machine that this process may use.
#pragma once

#include <cstdint>

#include "common/os/env.h"

namespace kernix::exec {

// The number of processors, from the affinity mask and the cgroup's CPU quota (rounded up). At least 1.
int UsableProcessors(Env& env);

// Bytes of memory: that of the machine, or the tightest limit of this process's cgroups (version 1 or 2). 0 if neither
// can be read.
uint64_t UsableMemory(Env& env);

}  // namespace kernix::exec
