// SPDX-License-Identifier: Apache-2.0
//
// Target names with a stable handler address, behind which code can be replaced.
//
// JAX refuses a second handler for a live CPU target and silently keeps the first on CUDA. So what JAX gets is a
// trampoline: a few bytes of code, one a target name, that jump through an atomic pointer. Replacing the pointer makes
// new code live, also inside functions that are already compiled.
#pragma once

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

// Binds `function` of `module` to the target `target` on `platform` ("cpu" or "CUDA"). REGISTRATION errors: a different
// artifact is live under the name and `replace` is false (the message names both remedies: replace=True, another name
// or prefix); the signature or the traits of the new code differ from the live one's. Thread-safe.
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
