// SPDX-License-Identifier: Apache-2.0
//
// What a user is told when a compiler or linker said no.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "daemon/exec/action.h"

namespace kernix::build {

// `argv` as a shell would take it, relative to the action's root.
std::string ShellCommand(const std::vector<std::string>& argv);

// The line of a tool's output that says what is wrong: the first error, without the place in an object file that means
// nothing to a user. The last line when none looks like an error; empty when there is no output.
std::string FirstError(std::string_view output);

// A COMPILATION error with the whole output and the command. `result` has a non-zero exit code.
absl::Status StepFailure(const exec::Action& action, const exec::ActionResult& result);

}  // namespace kernix::build
