// SPDX-License-Identifier: Apache-2.0
//
// How much this machine can keep tools from.
#pragma once

#include <string>
#include <string_view>

#include "common/os/env.h"

namespace kernix::exec {

// The setting `sandbox`.
enum class SandboxChoice {
  kBest,      // as much as the machine allows
  kLandlock,  // no namespaces
  kNone,
};

struct Sandbox {
  spawn::Rung rung = spawn::Rung::kNone;
  std::string lack;  // why it is not the wall, and what to do; empty: it is, or was not asked for
};

// "wall", "landlock", "none".
std::string_view RungName(spawn::Rung rung);

// Finds the highest rung by running a program on it, since no setting of a machine tells. Takes some milliseconds.
// `shows_machine`: see Spawner::SetFloor().
Sandbox FindSandbox(Env& env, SandboxChoice choice, bool shows_machine);

}  // namespace kernix::exec
