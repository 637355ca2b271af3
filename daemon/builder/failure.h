// SPDX-License-Identifier: Apache-2.0
//
// The errors of loads that users get: a compiler or linker fails, or nothing may be built.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/builder/miss_reason.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/exec/action.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// The most important line of a tool's output: the first error, without its position in an object file, which means
// nothing to users. If no line looks like an error, the last line; empty if there is no output.
std::string FirstError(std::string_view output);

// Advice about `error`, a message of `command`, a compiler or a linker: if it names an undefined symbol, a missing
// header or library of CUDA, or something else that kernix knows; otherwise empty.
std::string AdviceForFailure(std::string_view error, const std::vector<std::string>& command = {});

// Whether another way to make a step's outputs would meet the same end, later: the step is cancelled, or the machine
// has no room.
bool WouldEndAgain(const absl::Status& status);

// What stands before an error: "k.cu(3): error: no", "k.cu(3): error #20011-D: no", "k.cu:3:5: error: no [-Werror=no]".
inline constexpr absl::string_view kErrorMark = ": error";

// Makes a COMPILATION error with the complete output and the command. `result` must have a nonzero exit code.
absl::Status StepFailure(const exec::Action& action, const exec::ActionResult& result);

// Adds the files of `action` to its error, to run it again. If they are very large, leaves the error unchanged.
absl::Status WithFailedCommand(const absl::Status& error, const exec::Action& action);

// A file no longer matches the load's key. `what` names it. The client loads again.
absl::Status Outdated(const std::string& what);

// The load may not build. `frozen`: its program expects no build any more, which the error then says.
absl::Status NotCached(const std::string& name, const Miss& miss, bool frozen);

// The load's compilers are on another node. `upstream`: null if there is none.
absl::Status NotTaken(const std::string& name, const toolchain::Toolchain& toolchain, const UpstreamCache* upstream);

// NOT_CACHED for those who then do something else.
absl::Status NothingThere();

// The load forces a build, and the toolchain is only described.
absl::Status NothingToBuildWith(const toolchain::Toolchain& toolchain);

}  // namespace kernix::build
