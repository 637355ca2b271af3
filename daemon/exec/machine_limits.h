// SPDX-License-Identifier: Apache-2.0
//
// What of the machine this process may use.
#pragma once

#include <cstdint>
#include <optional>

#include "common/os/env.h"

namespace kernix::exec {

// Processors: of the affinity mask, and of the cgroup's CPU quota (rounded up). At least 1.
int UsableProcessors(Env& env);

// Bytes of memory: the machine's, or the tightest limit of the cgroups (version 1 or 2) that this process is in. 0 when
// neither can be read.
uint64_t UsableMemory(Env& env);

// The largest file that a program can make which this process starts with a limit of `wanted` bytes (0: none of its
// own): the limits of this process bound it, too. nullopt: any size.
std::optional<uint64_t> FileSizeLimit(Env& env, uint64_t wanted);

}  // namespace kernix::exec
