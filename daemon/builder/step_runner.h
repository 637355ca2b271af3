// SPDX-License-Identifier: Apache-2.0
//
// Runs a step in the fastest way that leads to its outputs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "daemon/builder/held_outputs.h"
#include "daemon/builder/step_cache.h"
#include "daemon/builder/step_times.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// A compile by nvcc runs in nvcc's phases (nvcc_compiler.h), one of C++ perhaps with a compiled preamble
// (cpp_compiler.h), a plain link with stubs (linker.h). A step that can be reused (see Reuse) runs once. Any other step
// is one command. Thread-safe.
class StepRunner {
 public:
  // All must outlive the runner. `lessons` runs what teaches shortcuts (learning.h). Without it, steps take those alone
  // that need no lesson.
  StepRunner(Env& env, exec::Executor& executor, StepCache& cache, StepRunner* lessons = nullptr);
  ~StepRunner();

  // How one step runs.
  struct Run {
    exec::AskersPtr askers;
    toolchain::ToolchainPtr toolchain = nullptr;  // of the step; null: its result is neither kept nor reused
    CompileMode mode = CompileMode::kFast;        // of the plan
    size_t share = 1;                             // see RunPlan()
    LookBudgetPtr looks = nullptr;                // of the load; null: each step has a bound of its own
    HeldOutputsPtr outputs = nullptr;             // of the plan; null: what phases make stays in memory
    StepObserver* observer;                       // may be null; must outlive the call of `done`
    CancellationPtr cancellation;
    exec::ActionDone done;
  };

  // As Executor::Submit() does with the step's action: calls `done` exactly once unless it throws. Phases tell the
  // observer when they wait and start; what they print reaches it when all have succeeded.
  void Submit(const Step& step, Run run);

  // Runs `action` as one command, whatever earlier steps have made.
  void RunCommand(const exec::Action& action, Run run);

  // Must be called when somebody has joined or left `askers`. Does not throw: without memory, places stay as they were.
  void AskersChanged(const exec::Askers& askers);

  // How many lessons run or wait.
  size_t LessonsLeft() const;

  // The registry must not be read after the runner is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  struct Reusable {
    Digest key;  // StepCache::KeyOf() of the step
    Step step;
    Run run;
    std::shared_ptr<TimedStep> timed;  // held by run.done
  };
  using ReusablePtr = std::shared_ptr<Reusable>;
  using StepOfUser = std::pair<Digest, UserId>;
  // A step that runs, and the same steps of other builds.
  struct StepFlight {
    exec::AskersPtr askers;
    std::vector<ReusablePtr> waiting;
  };

  // Has the step's observer told of its times before its end.
  std::shared_ptr<TimedStep> Measure(const exec::Action& action, Run& run);
  // Finds or makes the step's result, unless the same step runs for the same user already: then it waits for that
  // one's result. It does not wait in another user's turn: only one user may wait for its build, and that user must
  // wait for the other one, too.
  void RunOnce(ReusablePtr reusable);
  // Takes another node's result, or runs the step and keeps its result.
  void FindOrRun(const ReusablePtr& reusable, const exec::ActionDone& done);
  void RunAndKeep(const ReusablePtr& reusable, const exec::ActionDone& done);
  void Execute(const ReusablePtr& reusable, const exec::Action& action, exec::ActionDone done);
  // Those who wait for a step of a build that their user does not wait for (any more), or who are not this user's
  // alone.
  std::vector<ReusablePtr> TakeThoseInAnothersTurn();
  // Gives what was kept to those who have waited for it. The others run the step themselves.
  void Share(const StepOfUser& flight, const absl::Status& status);
  void RunAlone(const ReusablePtr& reusable);

  Env& env_;
  exec::Executor& executor_;
  StepCache& cache_;
  MetricCounter reused_;
  MetricCounter joined_;
  MetricCounter upstream_;
  MetricCounter run_;

  Mutex mutex_;
  absl::flat_hash_map<StepOfUser, StepFlight> running_ ABSL_GUARDED_BY(mutex_);

  struct Shortcuts;
  const std::unique_ptr<Shortcuts> shortcuts_;  // last: they may be learning
};

}  // namespace kernix::build
