// SPDX-License-Identifier: Apache-2.0
//
// Runs the faster action of a step (FasterAction in plan.h).
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

using RunAction = std::function<exec::ActionEnd(const exec::Action& action)>;

// Whether a step's own action would meet the same end, later: the step is cancelled, or the machine has no room.
bool WouldEndAgain(const absl::Status& status);

// Runs `step.faster`, if there is one, by `run_faster`. If it fails or prints anything, or if there is none, runs the
// step's own action by `run_own`.
exec::ActionEnd RunFaster(const Step& step, const RunAction& run_faster, const RunAction& run_own);

}  // namespace kernix::build
