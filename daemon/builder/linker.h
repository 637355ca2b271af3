// SPDX-License-Identifier: Apache-2.0
//
// Links objects without reading the unneeded parts of the libraries that the compiler names by itself (libstdc++, libc,
// ...).
//
// A small kernel needs a few names of these libraries. The GNU linker enters all of their ten thousand names, which
// takes five sixths of its time. So it gets small libraries: stubs with the names that the objects
// need and the libraries have. So a link depends only on its objects and the toolchain, and never on others' links.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/command_runner.h"
#include "daemon/exec/blob.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// The folder of the small libraries in the input root.
inline constexpr char kSmallLibraries[] = "kernix-libraries";

struct SmallLibraries {
  std::vector<exec::InputFile> files;  // in that folder
  // Sorted. If the linker does not find one of these, the libraries do not have it either.
  std::vector<std::string> names;
};

// Stubs (link_stub.h) of `libraries` ("libstdc++.so", as compilers name them), which are in `folders`, where the
// compiler looks for them. They have `names`, and the names that the compiler's start files need, if the libraries have
// them, with their versions. A linker that searches that folder first takes them, and finds everything else as usual.
// An error if a library is missing, because the compiler then links an archive, which may need any name; or if one has
// an unusual form: neither a shared library with versions nor a script of glibc's beside one.
absl::StatusOr<SmallLibraries> MakeSmallLibraries(Env& env, const std::vector<std::string>& folders,
                                                  const std::vector<std::string>& libraries,
                                                  const std::vector<std::string>& names);

// The objects do not tell which names CUDA's archives need from libc and libm. So a link with these archives has only a
// small libstdc++, from which they need nothing. Thread-safe.
class Linker {
 public:
  // Both must outlive the linker.
  Linker(Env& env, CommandRunner& commands, const Shortcuts& disabled)
      : env_(env), commands_(commands), takes_stubs_(!disabled.contains(Shortcut::kLinkStubs)) {}

  // As StepRunner::RunStep(), for a link. Adds the driver functions that it needs (driver_functions.h). Only a plain
  // link gets small libraries. If a link with these fails, or lacks a name, the step's own command runs, and users see
  // its output and errors. Without shortcuts, that command always runs; if it imports the same names as the link with
  // small libraries, the latter's result is taken, so the bytes are the same.
  exec::ActionEnd Run(Step step, const StepRun& run);

  void Register(MetricsRegistry& registry) const { links_.Register(registry); }

 private:
  // The libraries for a link, if it may have them.
  absl::StatusOr<SmallLibraries> SmallLibrariesFor(const Step& step, const toolchain::ToolchainPtr& toolchain) const;
  exec::ActionEnd RunSmall(Step step, const SmallLibraries& small, StepRun run, exec::ActionObserver* observer);

  Env& env_;
  CommandRunner& commands_;
  const bool takes_stubs_;
  CounterFamily links_{
      "kernix_plain_links_total",
      "Links with libraries of the toolchain only: with stubs of the libraries, or with the whole ones.",
      "how",
      {"stubs", "whole"}};
};

}  // namespace kernix::build
