// SPDX-License-Identifier: Apache-2.0
//
// The errors that users get when a compiler or linker fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "daemon/exec/action.h"

namespace kernix::build {

// The line of a tool's output that tells what is wrong: the first error, without its place in an object file, which
// means nothing to users. The last line if none looks like an error; empty if there is no output.
std::string FirstError(std::string_view output);

// Makes a COMPILATION error with the complete output and the command. `result` must have a nonzero exit code.
absl::Status StepFailure(const exec::Action& action, const exec::ActionResult& result);

}  // namespace kernix::build
