// SPDX-License-Identifier: Apache-2.0
//
// Chooses the fastest way that leads to a step's outputs.
#pragma once

#include <cstddef>
#include <memory>

#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/command_runner.h"
#include "daemon/builder/compiled_preambles.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/linker.h"
#include "daemon/builder/nvcc_compiler.h"
#include "daemon/builder/step_cache.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/shortcuts.h"

namespace kernix::build {

// A compile by nvcc runs in nvcc's phases (nvcc_compiler.h), one of C++ perhaps with a compiled preamble
// (compiled_preambles.h), a plain link with stubs (linker.h). Any other step, and each that these consist of, is one
// command, or an earlier result (command_runner.h). Thread-safe.
class StepRunner {
 public:
  // All must outlive the runner. `background` runs the lessons of shortcuts (learning.h), which make later builds
  // faster, so it should take nothing from `executor`. Null: steps take only shortcuts that need no lesson.
  StepRunner(Env& env, exec::Executor& executor, StepCache& cache, exec::Executor* background = nullptr,
             const Shortcuts& disabled = {});

  // Runs the step's action to its end, as Executor::Run() does. Blocks. Phases tell the observer when they wait and
  // start; their output reaches it when all have succeeded.
  exec::ActionEnd RunStep(const Step& step, const StepRun& run);

  // How many lessons run or wait.
  size_t LessonsLeft() const { return learning_.size(); }

  void Register(MetricsRegistry& registry) const;

 private:
  // For a kCppCompile, with a compiled preamble if there is one.
  exec::ActionEnd RunCppCompile(Step step, const StepRun& run);

  CommandRunner commands_;
  const std::unique_ptr<CommandRunner> lessons_;  // null: nothing is learned
  CompiledPreambles compiled_preambles_;
  NvccCompiler nvcc_;
  Linker linker_;
  Learning learning_;  // last: what it waits for uses the others
};

}  // namespace kernix::build
