// SPDX-License-Identifier: Apache-2.0
//
// Links objects without reading what they do not need of the libraries that the compiler names by itself (libstdc++,
// libc, ...).
//
// A small kernel needs a few names of these libraries. The GNU linker enters all of the some ten thousand that they
// have, which takes five sixths of its time. So it gets small libraries (small_libraries.h): stubs with the names that
// the objects need and the libraries have. A link therefore depends on its objects and the toolchain alone, and never
// on what others have linked.
#pragma once

#include "absl/status/statusor.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/small_libraries.h"
#include "daemon/builder/step_runner.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// What CUDA's archives need of libc and libm, the objects do not tell. A link with them has a small libstdc++ alone, of
// which they need nothing. Thread-safe.
class Linker {
 public:
  // `runner` runs the commands. Both must outlive the linker.
  Linker(Env& env, StepRunner& runner, const Shortcuts& disabled)
      : env_(env), runner_(runner), takes_stubs_(!disabled.contains(Shortcut::kLinkStubs)) {}

  // As StepRunner::RunStep(), for a link. What it needs of the CUDA driver comes with it
  // (driver_functions.h). Only a plain one gets small libraries. If a link with these fails, or finds too
  // little in them, the step's own command runs, whose output and errors are what users see. Without shortcuts, that
  // command runs in any case; if it imports what the link with small libraries does, that one's result is taken: it is
  // the same bytes.
  exec::ActionEnd Run(Step step, const StepRunner::Run& run);

  // The registry must not be read after the linker is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  // The libraries for a link, if it may have them.
  absl::StatusOr<SmallLibraries> SmallLibrariesFor(const Step& step, const toolchain::ToolchainPtr& toolchain) const;
  exec::ActionEnd RunSmall(const Step& step, const SmallLibraries& small, StepRunner::Run run, StepObserver& observer);

  Env& env_;
  StepRunner& runner_;
  const bool takes_stubs_;
  MetricCounter with_stubs_;
  MetricCounter whole_;
};

}  // namespace kernix::build
