// SPDX-License-Identifier: Apache-2.0
//
// Runs a compile by nvcc as nvcc's phases (nvcc_phases.h). Three shortcuts may serve, none of them in a new store:
// stand-ins for CUDA's runtime header (stand_ins.h), kept preambles (kept_preambles.h), and compiled ones
// (compiled_preambles.h).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/command_runner.h"
#include "daemon/builder/compiled_preambles.h"
#include "daemon/builder/kept_preambles.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/stand_ins.h"
#include "daemon/builder/step_cache.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// Thread-safe.
class NvccCompiler {
 public:
  // All must outlive the compiler.
  NvccCompiler(Env& env, CommandRunner& commands, StepCache& cache, CompiledPreambles& compiled_preambles,
               Learning& learning, const Shortcuts& disabled)
      : env_(env),
        commands_(commands),
        has_phases_(!disabled.contains(Shortcut::kPhases)),
        stand_ins_(env, cache, learning, disabled),
        preambles_(cache, learning, disabled),
        compiled_preambles_(compiled_preambles) {}

  // As StepRunner::RunStep(), for a kCudaCompile. If kernixd does not understand nvcc's dry run, or if a phase fails
  // without naming an error, the step runs as its own command, and users see its output and errors. An error that a
  // phase names is nvcc's; if a stand-in may have changed it, the phase has read the whole header.
  exec::ActionEnd Run(const Step& step, const StepRun& run);

  void Register(MetricsRegistry& registry) const;

 private:
  class Compile;
  using DryRunPtr = std::shared_ptr<const std::string>;

  Env& env_;
  CommandRunner& commands_;
  const bool has_phases_;

  CounterFamily compiles_{"kernix_nvcc_compiles_total",
                          "Compiles by nvcc: in its phases, or by one call of nvcc, and why.",
                          "how",
                          {"phases", "whole_forced", "whole_not_understood", "whole_after_failure", "again_for_lines"}};
  SharedLru<Digest, DryRunPtr> dry_runs_{256};  // what nvcc has answered, by question
  StandIns stand_ins_;
  KeptPreambles preambles_;
  CompiledPreambles& compiled_preambles_;
};

}  // namespace kernix::build
