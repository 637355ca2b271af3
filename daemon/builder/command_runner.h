// SPDX-License-Identifier: Apache-2.0
//
// Runs one step as a command, or takes the result of an earlier one.
#pragma once

#include <cstddef>

#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/held_outputs.h"
#include "daemon/builder/step_cache.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/shortcuts.h"

namespace kernix::build {

// How one step runs, or each step of a plan.
struct StepRun {
  exec::AskersPtr askers;
  toolchain::ToolchainPtr toolchain = nullptr;  // of the step; null: its result is neither kept nor reused
  CompileMode mode = CompileMode::kFast;        // of the plan
  size_t share = 1;                             // see RunPlan()
  UpstreamBudgetPtr budget = nullptr;           // of the load; null: each step has a bound of its own
  HeldOutputsPtr outputs = nullptr;             // of the plan; null: what phases make stays in memory
  exec::ActionObserver* observer = nullptr;     // may be null
  TraceRecorder* trace = nullptr;               // of the build; null: nobody reads one
  CancellationPtr cancellation = nullptr;       // may be null
};

// What every other way to run a step (step_runner.h) comes down to. Thread-safe.
class CommandRunner {
 public:
  // All must outlive the runner.
  CommandRunner(Env& env, exec::Executor& executor, StepCache& cache, const Shortcuts& disabled = {})
      : env_(env), executor_(executor), cache_(cache), is_reuse_disabled_(disabled.contains(Shortcut::kStepResults)) {}

  // Runs the step's action to its end, as Executor::Run() does. Blocks. A step that can be reused (see Reuse) takes an
  // earlier result, or another node's, or runs and keeps its result. `step.faster` runs first, if there is one.
  exec::ActionEnd RunStep(const Step& step, const StepRun& run);

  // `pool`: labels of a runner beside the main one. Such a runner reuses nothing, and has no counters for that.
  void Register(MetricsRegistry& registry, const MetricsRegistry::Labels& pool = {}) const;

 private:
  struct Reusable {
    Digest key;  // StepCache::KeyOf() of the step
    Step step;
    const StepRun& run;
    TimedStep& timed;
  };

  exec::ActionEnd RunReusable(const Step& step, const StepRun& run, TimedStep& timed);
  exec::ActionEnd FindOrRun(const Reusable& reusable);
  exec::ActionEnd RunAndKeep(const Reusable& reusable);
  // If the faster action fails or prints anything, nobody hears of it, and the step's own action runs.
  exec::ActionEnd RunFaster(const Step& step, const StepRun& run, TimedStep& timed);

  Env& env_;
  exec::Executor& executor_;
  StepCache& cache_;
  const bool is_reuse_disabled_;
  StepMetrics metrics_;
  CounterFamily reusable_{
      "kernix_reusable_steps_total",
      "Steps whose result can serve other builds: taken from an earlier build or from another node, or run.",
      "how",
      {"reused", "upstream", "run"}};
};

}  // namespace kernix::build
