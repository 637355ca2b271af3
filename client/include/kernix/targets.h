// SPDX-License-Identifier: Apache-2.0
//
// Target names with a stable handler address, behind which code can be replaced.
//
// JAX keeps the first handler of a target: a second is refused, or lost if it comes before the backend starts. So what
// JAX gets is a trampoline: a few bytes of code, one a target name, that jump through an atomic pointer. Replacing the
// pointer makes new code live, also inside functions that are already compiled.
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
  kUnchanged,  // the same code is live under the name already
  kReplaced,   // new code is live under the old address; nothing to register
};

struct Binding {
  BindOutcome outcome = BindOutcome::kNew;
  Handler address = nullptr;  // the trampoline: stays the same for the life of the process
};

// A name, and the function of a module that shall be live under it.
struct TargetName {
  std::string target;
  std::string function;
};

// Tells a runtime that calls of `target` go to `address`. It is called without a lock, for each new name in turn; an
// error ends the bind.
using AnnounceTarget = std::function<absl::Status(const std::string& target, Handler address)>;

// Binds functions of `module` to targets on `platform` ("cpu" or "CUDA"): all of them, or none. The answer has a
// Binding for each name, in their order. Thread-safe.
//
// REGISTRATION errors: a different artifact is live under a name and `replace` is false (the message names both
// remedies: replace=True, another name or prefix); the signature or the traits of the new code differ from the live
// one's. INVALID_REQUEST: a name that cannot be one, or that comes twice. NOT_FOUND: no such function.
//
// After an error nothing has changed under any live name, and no name has become one. A runtime may have taken some of
// the names before `announce` failed: their addresses and traits stay theirs, so that they can be bound later, and a
// call of one fails with an XLA error that says so.
absl::StatusOr<std::vector<Binding>> BindTargets(std::string_view platform, const Module& module,
                                                 const std::vector<TargetName>& names, bool replace,
                                                 const AnnounceTarget& announce = nullptr);

// BindTargets() for one name, without announcing it: register the address of a new one with the runtime.
absl::StatusOr<Binding> BindTarget(std::string_view target, std::string_view platform, const Module& module,
                                   std::string_view function, bool replace);

struct TargetInfo {
  std::string target;
  std::string platform;
  std::string module;
  std::string artifact_digest;
  std::vector<std::string> tokens;
  Handler address = nullptr;
};

// All targets of this process, by name.
std::vector<TargetInfo> ListTargets();

}  // namespace kernix
