// SPDX-License-Identifier: Apache-2.0
//
// Target names with stable handler addresses, behind which code can be replaced.
//
// JAX keeps the first handler of a target. It refuses a second one, or loses it if it comes before the backend starts.
// So kernix gives JAX a trampoline: for each target name, a few bytes of code that jump through an atomic pointer.
// Replacing the pointer makes new code live, also inside functions that are already compiled.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

enum class BindOutcome {
  kNew,        // the name was free: register `address` with the runtime
  kUnchanged,  // the same code is already live under the name
  kReplaced,   // new code is live under the old address; there is nothing to register
};

struct Binding {
  BindOutcome outcome = BindOutcome::kNew;
  Handler address = nullptr;  // the trampoline: never changes until the process ends
};

// A target name, and the function of a module that should be live under it.
struct TargetName {
  std::string target;
  std::string function;
};

// Tells a runtime that calls of `target` go to `address`. Called without a lock, once for each new name; an error ends
// the bind.
using AnnounceTarget = std::function<absl::Status(const std::string& target, Handler address)>;

// Binds functions of `module` to targets on `platform` ("cpu" or "CUDA"): all of them, or none. Returns a Binding for
// each name, in the same order. Thread-safe.
//
// Returns REGISTRATION if a different artifact is live under a name and `replace` is false (the message names both
// remedies: replace=True, or another name or prefix), or if the traits of the new code differ from those of the live
// code. New code may have another signature: a call that was compiled for the old one then fails with an error that
// says so. Returns INVALID_REQUEST for an invalid name or one that appears twice, and NOT_FOUND for an unknown
// function.
//
// After an error, no live name has changed and no name has become live. A runtime may have accepted some of the names
// before `announce` failed. Such names keep their addresses and traits, and can be bound later; until then, calling one
// fails with an XLA error that says so.
absl::StatusOr<std::vector<Binding>> BindTargets(std::string_view platform, const Module& module,
                                                 const std::vector<TargetName>& names, bool replace,
                                                 const AnnounceTarget& announce = nullptr);

// BindTargets() for one name, without announcing it. The caller must register the address of a new name with the
// runtime.
absl::StatusOr<Binding> BindTarget(std::string_view target, std::string_view platform, const Module& module,
                                   std::string_view function, bool replace);

// Lets calls of `targets` on the CPU fail with an error that says that they are CUDA code, in place of the runtime's
// own that there is no such target. Leaves names that are known on the CPU, or that `announce` refuses. They can be
// bound later. Returns a REGISTRATION error if the system forbids executable memory.
absl::Status RefuseOnCpu(const std::vector<std::string>& targets, const AnnounceTarget& announce);

struct TargetInfo {
  std::string target;
  std::string platform;
  std::string module;
  std::string artifact_digest;
  std::vector<std::string> tokens;
  Handler address = nullptr;
};

// All targets of this process, sorted by name.
std::vector<TargetInfo> ListTargets();

}  // namespace kernix
