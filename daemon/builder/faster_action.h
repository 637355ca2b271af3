// SPDX-License-Identifier: Apache-2.0
//
// Runs the faster action of a step (FasterAction in plan.h).
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// Runs an action of a step. Must call `done` exactly once, and must not throw.
using RunAction = std::function<void(const exec::Action& action, exec::ActionDone done)>;

// Whether a step's own action would meet the same end, later: the step is cancelled, or the machine has no room.
bool WouldEndAgain(const absl::Status& status);

// Runs `step.faster` by `run_faster`. If it fails or prints anything, runs the step's own action by `run_own`.
void RunFaster(const Step& step, const RunAction& run_faster, RunAction run_own, exec::ActionDone done);

}  // namespace kernix::build
