// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan's steps, each as soon as its inputs are available.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "daemon/builder/command_runner.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

using PlanOutputs = std::map<std::string, exec::Content>;  // by path

// The outcome of a plan.
struct PlanEnd {
  absl::Status status;        // the first failure
  PlanOutputs outputs;        // of the steps that succeeded
  std::string printed;        // unless it is an output, in the plan's order: by all, or by those before `failed`
  std::set<StepKind> reused;  // kinds of the steps whose result was made by another one
  std::shared_ptr<const Step> failed;  // the step whose command failed, as it ran, if `status` is about one
};

// Runs one step of a plan to its end. Blocks. Must be thread-safe.
using StepFunction = std::function<exec::ActionEnd(const Step& step, const StepRun& run)>;

// Runs a plan to its end, each step by `run_step`. Independent steps run side by side, each in a thread: as many as the
// askers want, at most 128. A plan that is a step of another plan, one of `run.share` side by side, gets its share of
// these. The first failure cancels the running steps, and is the plan's. With `plan.in_order`, a failure cancels only
// the steps behind it, and the plan's is that of the first failed step in the plan's order. A command that failed gives
// a COMPILATION error; outputs that are too large, and exceptions, give a RESOURCE error. If `run.cancellation` fires,
// the plan ends early with a CANCELLED error. `run.observer` receives the events of all steps, those that run side by
// side at the same time, and must not call back into the code that runs the plan. The toolchain and the mode are the
// plan's.
PlanEnd RunPlan(Plan plan, StepFunction run_step, StepRun run);

}  // namespace kernix::build
