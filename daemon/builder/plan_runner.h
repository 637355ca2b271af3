// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan's steps, each as soon as its inputs are available.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/cancellation.h"
#include "daemon/builder/held_outputs.h"
#include "daemon/builder/step_runner.h"
#include "daemon/builder/step_times.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// Receives the events of a plan. Thread-safe: steps that run in parallel call it concurrently. Must not call back into
// the code that runs the plan.
class PlanObserver {
 public:
  virtual ~PlanObserver() = default;
  virtual void OnQueued(const std::string& step, int actions_ahead) = 0;
  virtual void OnStarted(const exec::Action& action) = 0;
  virtual void OnOutput(std::string_view text) = 0;
  virtual void OnStepDone(int steps_done) = 0;
  // See StepObserver.
  virtual void OnStepEnded(const StepTimes&) {}
};

using PlanOutputs = std::map<std::string, exec::Content>;  // by path

// The outcome of a plan.
struct PlanEnd {
  absl::Status status;                 // the first failure
  PlanOutputs outputs;                 // of the steps that succeeded
  std::string printed;                 // if all have, in the plan's order, unless it is an output
  bool has_printed = false;            // whether one of these has, unless it is an output
  std::shared_ptr<const Step> failed;  // the step whose command failed, as it ran, if `status` is about one
};
using PlanDone = std::function<void(PlanEnd)>;  // must not throw

// Returns once the first steps are submitted. Submits as many steps at a time as the askers want, or a `share`th of
// them: for a plan that is a step of another one, of which so many run side by side. The first failure cancels the
// running steps. `done` is called exactly once, when no step runs any more, and gets that failure. A command that
// failed gives a COMPILATION error; outputs that are too large, and exceptions, give a RESOURCE error. If RunPlan()
// itself throws, nothing runs and `done` is not called. `runner` and `observer` must live until `done` has returned. If
// `cancellation`, which the caller keeps, fires, the plan ends early with a CANCELLED error. The steps have the
// `askers`' places, and share the load's `looks` (may be null). What they make lies in `outputs` (null: in memory).
void RunPlan(Plan plan, exec::AskersPtr askers, StepRunner& runner, CancellationPtr cancellation,
             PlanObserver& observer, PlanDone done, LookBudgetPtr looks = nullptr, HeldOutputsPtr outputs = nullptr,
             size_t share = 1);

}  // namespace kernix::build
