// SPDX-License-Identifier: Apache-2.0
//
// Starting a program from a process with many threads.
#pragma once

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::posix {

// Starts `spec` as the leader of a process group of its own: stdin from /dev/null, stdout and stderr to `output_fd`, no
// other descriptor, default signal handling, nothing blocked, no core files. The kernel kills the program when the
// calling *thread* ends, so that no compiler outlives a daemon that was killed: the caller must stay until it has
// reaped the child.
//
// kNotFound or kPermissionDenied when the program or its folder cannot be used.
absl::StatusOr<pid_t> Spawn(const ProcessSpec& spec, int output_fd);

}  // namespace kernix::posix
