// SPDX-License-Identifier: Apache-2.0
//
// Runs a user's command in the foreground.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix::ctl {

// Runs `words`, the first of which is found on PATH, with this process's terminal, files and environment, in which
// `variable` ("NAME=value") replaces the one of its name, and waits for its end. Ctrl-C is for the command, which the
// terminal tells as well; SIGTERM and SIGHUP are passed on. Returns its exit code, 128 + N if signal N ended it.
// kNotFound or kPermissionDenied if it cannot be started. Call it in a process that has no other thread and no other
// child.
absl::StatusOr<int> RunInForeground(const std::vector<std::string>& words, const std::string& variable);

}  // namespace kernix::ctl
