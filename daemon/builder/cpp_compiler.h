// SPDX-License-Identifier: Apache-2.0
//
// Runs the compile of a C++ unit, with a compiled preamble if there is one.
#pragma once

#include <memory>

#include "daemon/builder/compiled_preambles.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/step_runner.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// Thread-safe.
class CppCompiler {
 public:
  // Both must outlive the compiler. `runner` runs everything.
  CppCompiler(StepRunner& runner, CompiledPreambles& preambles) : runner_(runner), preambles_(preambles) {}

  // As StepRunner::Submit(), for a step that compiles a C++ unit, with a toolchain.
  void Submit(const Step& step, StepRunner::Run run);

 private:
  struct Compile;

  void Run(const Compile& compile, const exec::Action& action, StepObserver* observer, exec::ActionDone done);
  void End(const Compile& compile, absl::StatusOr<exec::ActionResult> result);
  Learning::LessonPtr PrepareLesson(const Compile& compile, const absl::StatusOr<exec::ActionResult>& result);

  StepRunner& runner_;
  CompiledPreambles& preambles_;
};

}  // namespace kernix::build
