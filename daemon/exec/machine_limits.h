// SPDX-License-Identifier: Apache-2.0
//
// The share of the machine that this process may use.
#pragma once

#include <cstdint>
#include <optional>

#include "common/os/env.h"

namespace kernix::exec {

// The number of processors, from the affinity mask and the cgroup's CPU quota (rounded up). At least 1.
int UsableProcessors(Env& env);

// Bytes of memory: that of the machine, or the tightest limit of this process's cgroups (version 1 or 2). 0 if neither
// can be read.
uint64_t UsableMemory(Env& env);

// The size in bytes of the largest file that a child can write if this process starts it with a limit of `wanted` bytes
// (0: no limit of its own). The limits of this process apply, too. nullopt: unlimited.
std::optional<uint64_t> FileSizeLimit(Env& env, uint64_t wanted);

// The seconds of processor time at which the kernel kills this process and each of its children. nullopt: unlimited.
std::optional<uint64_t> HardCpuLimit(Env& env);

}  // namespace kernix::exec
