// SPDX-License-Identifier: Apache-2.0
//
// The errors that users get when a compiler or linker fails.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "daemon/exec/action.h"

namespace kernix::build {

// The line of a tool's output that tells what is wrong: the first error, without its place in an object file, which
// means nothing to users. The last line if none looks like an error; empty if there is no output.
std::string FirstError(std::string_view output);

// What to do about `error`, a message of a compiler or a linker, if it names a symbol that nothing defines, a header or
// a library of CUDA that is not there, or an array that is called with wrong indices; otherwise empty.
std::string AdviceForFailure(std::string_view error);

// Makes a COMPILATION error with the complete output and the command. `result` must have a nonzero exit code.
absl::Status StepFailure(const exec::Action& action, const exec::ActionResult& result);

// Adds to the error of `action` what it takes to run it again. Not for a shared daemon: an action may have files of the
// machine among its inputs. If they are very large, the error stays as it is.
absl::Status WithFailedCommand(const absl::Status& error, const exec::Action& action);

}  // namespace kernix::build
