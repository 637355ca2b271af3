// SPDX-License-Identifier: Apache-2.0
//
// Links objects without reading the unneeded parts of the libraries that the compiler names by itself (libstdc++, libc,
// ...).
//
// A small kernel needs a few names of these libraries. The GNU linker enters all of their ten thousand names, which
// takes five sixths of its time. So it gets small libraries (small_libraries.h): stubs with the names that the objects
// need and the libraries have. So a link depends only on its objects and the toolchain, and never on others' links.
#pragma once

#include "absl/status/statusor.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/small_libraries.h"
#include "daemon/builder/step_runner.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// The objects do not tell which names CUDA's archives need from libc and libm. So a link with these archives has only a
// small libstdc++, from which they need nothing. Thread-safe.
class Linker {
 public:
  // `runner` runs the commands. Both must outlive the linker.
  Linker(Env& env, StepRunner& runner, const Shortcuts& disabled)
      : env_(env), runner_(runner), takes_stubs_(!disabled.contains(Shortcut::kLinkStubs)) {}

  // As StepRunner::RunStep(), for a link. Adds the driver functions that it needs (driver_functions.h). Only a plain
  // link gets small libraries. If a link with these fails, or lacks a name, the step's own command runs, and users see
  // its output and errors. Without shortcuts, that command always runs; if it imports the same names as the link with
  // small libraries, the latter's result is taken, so the bytes are the same.
  exec::ActionEnd Run(Step step, const StepRunner::Run& run);

  // The registry must not be read after the linker is destroyed.
  void Register(MetricsRegistry& registry) const { links_.Register(registry); }

 private:
  // The libraries for a link, if it may have them.
  absl::StatusOr<SmallLibraries> SmallLibrariesFor(const Step& step, const toolchain::ToolchainPtr& toolchain) const;
  exec::ActionEnd RunSmall(const Step& step, const SmallLibraries& small, StepRunner::Run run,
                           exec::ActionObserver* observer);

  Env& env_;
  StepRunner& runner_;
  const bool takes_stubs_;
  CounterFamily links_{
      "kernix_plain_links_total",
      "Links with libraries of the toolchain only: with stubs of the libraries, or with the whole ones.",
      "how",
      {"stubs", "whole"}};
};

}  // namespace kernix::build
