// SPDX-License-Identifier: Apache-2.0
//
// What a shared kernixd shows of what compilers say. A source can have a compiler read any file that the service can
// read, by ways that no reading of the source sees, and quote it: as the line under a message, in the message itself,
// as the name of a symbol. So nothing is shown before it is known that what was read is the request's or the
// toolchain's.
//
// Of a build that succeeds the tools have told (CheckFilesRead). A compile that fails is done once more, by the same
// command, with a compiler that says which files it opens as it opens them (`-H`), and hands nothing to an assembler,
// which does not tell when it fails; what that says is shown. When the compiler has nothing to say, it is the assembler
// that said no: it is shown what the compiler made, if none of that can make it read a file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/cancellation.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"

namespace kernix::build {

// Has every compiler that `plan` calls show no line of a file: it would open what `#line` names. Does not change what
// is made.
void HideSourceLines(const toolchain::Toolchain& toolchain, Plan& plan);

// What steps of a build that succeeded, and for which CheckFilesRead() is content, have printed, as users see it.
std::string ShownOfSuccess(const BuildRequest& request, const HeaderContents& contents, std::string_view printed);

// Whether the assembler, given `text`, may read another file. True for what can make the words that do so.
bool AssemblerMayRead(std::string_view text);

// A plan that failed. All of it must live until `told` returned.
struct FailedBuild {
  Env& env;
  exec::Executor& executor;
  UserId user;  // whom the executor serves
  const BuildRequest& request;
  const HeaderContents& contents;
  const PlanFiles& files;
  PlanEnd end;
  CancellationPtr cancellation;
};

// Calls `told` once, with what the askers are told: `end.status` with output that may be shown, or without, or the
// error of what was read. Perhaps before it returns.
void TellFailure(FailedBuild build, std::function<void(absl::Status)> told);

}  // namespace kernix::build
