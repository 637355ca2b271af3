// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/faster_action.h"

#include <memory>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "daemon/builder/dependency_file.h"

namespace kernix::build {
namespace {

// Whether the result is what the step's own action would have brought. Completes the list of files that were read.
bool TakeResult(const FasterAction& faster, absl::StatusOr<exec::ActionResult>& result) {
  if (!result.ok() || result->exit_code != 0 || !result->output.empty()) return false;
  exec::Content& list = result->outputs.at(faster.dependencies);
  std::vector<std::string> files = ParseDependencyFile(*list);
  files.insert(files.end(), faster.files.begin(), faster.files.end());
  list = exec::MakeContent(MakeDependencyFile(faster.dependencies, files));
  return true;
}

}  // namespace

bool WouldEndAgain(const absl::Status& status) {
  const ErrorKind kind = KindOf(status);
  return kind == v1::ErrorDetail::CANCELLED || kind == v1::ErrorDetail::RESOURCE;
}

void RunFaster(const Step& step, const RunAction& run_faster, RunAction run_own, exec::ActionDone done) {
  run_faster(step.faster->action, [faster = step.faster, own = step.action, run_own = std::move(run_own),
                                   done = std::move(done)](absl::StatusOr<exec::ActionResult> result) {
    if (!result.ok() && WouldEndAgain(result.status())) return done(std::move(result));
    bool is_taken = false;
    (void)CatchExceptions("not taken", [&] {
      is_taken = TakeResult(*faster, result);
      return absl::OkStatus();
    });
    is_taken ? done(std::move(result)) : run_own(own, done);
  });
}

}  // namespace kernix::build
