// SPDX-License-Identifier: Apache-2.0
//
// Decides what a shared kernixd shows of compiler output. A source can make a compiler read any file that the service
// can read, in ways that no check of the source sees, and quote it: as the line under a message, in the message itself,
// or as the name of a symbol. So kernixd shows nothing before it knows that every file read belongs to the request or
// the toolchain.
//
// If a build succeeds, the tools have reported what they read (CheckFilesRead). If a compile fails, kernixd runs the
// same command again with a compiler that reports each file as it opens it (`-H`) and without an assembler, which does
// not report after a failure; kernixd shows the output of this run. If the compiler reports no error, it was the
// assembler that failed: kernixd gives it the compiler's output again, if nothing in that can make it read a file.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/cancellation.h"
#include "common/os/env.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"

namespace kernix::build {

// Stops every compiler that `plan` calls from showing source lines: it would open whatever file `#line` names. Does not
// change the outputs.
void HideSourceLines(const toolchain::Toolchain& toolchain, Plan& plan);

// The output of the steps of a successful build, in the form for users. CheckFilesRead() must have accepted the build.
std::string ShownOfSuccess(const BuildRequest& request, const HeaderContents& contents, std::string_view printed);

// Whether the assembler may read another file when it is given `text`. Also true for directives that can produce such
// words.
bool AssemblerMayRead(std::string_view text);

// A plan that failed.
struct FailedBuild {
  Env& env;
  exec::Executor& executor;
  exec::AskersPtr askers;
  const BuildRequest& request;
  const HeaderContents& contents;
  const PlanFiles& files;
  const PlanEnd& end;
  CancellationPtr cancellation;
};

// The error for the askers: `end.status` with output that may be shown, or without output, or the error about a file
// that was read.
absl::Status ToldFailure(const FailedBuild& build);

}  // namespace kernix::build
