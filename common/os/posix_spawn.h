// SPDX-License-Identifier: Apache-2.0
//
// Starts a program from a process with many threads.
#pragma once

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::posix {

// Starts `spec` as the leader of its own process group: stdin from /dev/null, stdout and stderr to `output_fd`, no
// other descriptor, default signal handling, no blocked signals, no core files. The kernel kills the program when the
// calling *thread* ends, so that no compiler outlives a killed daemon. The caller must therefore stay alive until it
// has reaped the child.
//
// Returns kNotFound or kPermissionDenied if the program or its folder cannot be used.
absl::StatusOr<pid_t> Spawn(const ProcessSpec& spec, int output_fd);

}  // namespace kernix::posix
