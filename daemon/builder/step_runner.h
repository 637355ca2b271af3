// SPDX-License-Identifier: Apache-2.0
//
// Runs a step in the fastest way that leads to its outputs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/builder/held_outputs.h"
#include "daemon/builder/step_cache.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/shortcuts.h"

namespace kernix::build {

// A compile by nvcc runs in nvcc's phases (nvcc_compiler.h), one of C++ perhaps with a compiled preamble
// (compiled_preambles.h), a plain link with stubs (linker.h). A step that can be reused (see Reuse) takes an earlier
// result. Any other step is one command. Thread-safe.
class StepRunner {
 public:
  // All must outlive the runner. `lessons` runs the lessons of shortcuts (learning.h). Without it, steps take only
  // shortcuts that need no lesson.
  StepRunner(Env& env, exec::Executor& executor, StepCache& cache, StepRunner* lessons = nullptr,
             Shortcuts disabled = {});
  ~StepRunner();

  // How one step runs.
  struct Run {
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

  // Runs the step's action to its end, as Executor::Run() does. Blocks. Phases tell the observer when they wait and
  // start; their output reaches it when all have succeeded.
  exec::ActionEnd RunStep(const Step& step, const Run& run);

  // Runs `action`, of a step of this kind, as one command, whatever earlier steps have made.
  exec::ActionEnd RunCommand(const exec::Action& action, StepKind kind, const Run& run);

  // How many lessons run or wait.
  size_t LessonsLeft() const;

  void Register(MetricsRegistry& registry) const;

 private:
  struct Reusable {
    Digest key;  // StepCache::KeyOf() of the step
    Step step;
    const Run& run;
    TimedStep& timed;
  };

  // For a kCppCompile, with a compiled preamble if there is one.
  exec::ActionEnd RunCppCompile(Step step, const Run& run);
  exec::ActionEnd RunReusable(const Step& step, const Run& run);
  // Takes an earlier result, or another node's, or runs the step and keeps its result.
  exec::ActionEnd FindOrRun(const Reusable& reusable);
  exec::ActionEnd RunAndKeep(const Reusable& reusable);

  Env& env_;
  exec::Executor& executor_;
  StepCache& cache_;
  StepRunner* const lessons_;
  const Shortcuts disabled_;
  StepMetrics metrics_;
  CounterFamily reusable_{
      "kernix_reusable_steps_total",
      "Steps whose result can serve other builds: taken from an earlier build or from another node, or run.",
      "how",
      {"reused", "upstream", "run"}};

  struct Parts;
  const std::unique_ptr<Parts> parts_;  // last: they may be learning
};

}  // namespace kernix::build
