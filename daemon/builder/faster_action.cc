// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/faster_action.h"

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

exec::ActionEnd RunFaster(const Step& step, const RunAction& run_faster, const RunAction& run_own) {
  if (step.faster == nullptr) return run_own(step.action);
  exec::ActionEnd end = run_faster(step.faster->action);
  if (!end.ok() && WouldEndAgain(end.status())) return end;
  bool is_taken = false;
  (void)CatchExceptions("not taken", [&] {
    is_taken = TakeResult(*step.faster, end);
    return absl::OkStatus();
  });
  return is_taken ? end : run_own(step.action);
}

}  // namespace kernix::build
