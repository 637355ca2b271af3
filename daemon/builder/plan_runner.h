// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan's steps on an executor, each as soon as its inputs are there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/cancellation.h"
#include "common/base/user_id.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// Told how a plan goes. Thread-safe: steps that run side by side call it at the same time. Must not call back into what
// runs the plan.
class PlanObserver {
 public:
  virtual ~PlanObserver() = default;
  virtual void OnQueued(const std::string& step, int actions_ahead) = 0;
  virtual void OnStarted(const exec::Action& action) = 0;
  virtual void OnOutput(std::string_view text) = 0;
  virtual void OnStepDone(int steps_done) = 0;
};

using PlanOutputs = std::map<std::string, exec::Content>;  // by path

// What came of a plan.
struct PlanEnd {
  absl::Status status;                         // the first failure
  PlanOutputs outputs;                         // of the steps that succeeded
  std::string printed;                         // by these, in the order in which they ended
  std::shared_ptr<const exec::Action> failed;  // the command that said no, when `status` tells of one
};
using PlanDone = std::function<void(PlanEnd)>;

// Returns once the first steps are submitted. At most `max_parallel` of the steps (0: any number) are with the executor
// at once. The first failure cancels what still runs; `done` is called exactly once, when nothing of the plan runs any
// more, and gets that failure. A command that failed is a COMPILATION error, too large outputs are a RESOURCE error.
// `executor` and `observer` must live until `done` returned. Firing `cancellation`, which stays with the caller, ends
// the plan early, with a CANCELLED error. The executor serves `user`.
void RunPlan(Plan plan, UserId user, exec::Executor& executor, size_t max_parallel, CancellationPtr cancellation,
             PlanObserver& observer, PlanDone done);

}  // namespace kernix::build
