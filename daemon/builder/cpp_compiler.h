// SPDX-License-Identifier: Apache-2.0
//
// Runs the compile of a C++ unit, with a compiled preamble if there is one.
#pragma once

#include "daemon/builder/compiled_preambles.h"
#include "daemon/builder/step_runner.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// Thread-safe.
class CppCompiler {
 public:
  // Both must outlive the compiler. `runner` runs everything.
  CppCompiler(StepRunner& runner, CompiledPreambles& preambles) : runner_(runner), preambles_(preambles) {}

  // As StepRunner::RunStep(), for a step that compiles a C++ unit, with a toolchain.
  exec::ActionEnd Run(Step step, const StepRunner::Run& run);

 private:
  StepRunner& runner_;
  CompiledPreambles& preambles_;
};

}  // namespace kernix::build
