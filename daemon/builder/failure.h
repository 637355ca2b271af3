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

// The most important line of a tool's output: the first error, without its position in an object file, which means
// nothing to users. If no line looks like an error, the last line; empty if there is no output.
std::string FirstError(std::string_view output);

// Advice about `error`, a message of `command`, a compiler or a linker: if it names an undefined symbol, a missing
// header or library of CUDA, or something else that kernix knows; otherwise empty.
std::string AdviceForFailure(std::string_view error, const std::vector<std::string>& command = {});

// Makes a COMPILATION error with the complete output and the command. `result` must have a nonzero exit code.
absl::Status StepFailure(const exec::Action& action, const exec::ActionResult& result);

// Adds the files of `action` to its error, to run it again. If they are very large, leaves the error unchanged.
absl::Status WithFailedCommand(const absl::Status& error, const exec::Action& action);

}  // namespace kernix::build
