// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/sandbox.h"

#include "common/base/strings.h"

namespace kernix::exec {
namespace {

constexpr std::string_view kRemedy =
    "a container needs user namespaces (deploy/kubernetes has an example), and Ubuntu needs the AppArmor profile in "
    "deploy/apparmor";

// OK if a program runs on this rung.
absl::Status Try(Env& env, spawn::Rung rung) {
  const ProcessSpec spec{.argv = {"/bin/true"}, .environment = {}, .enclosure = {.rung = rung, .readable = {"/"}}};
  const absl::StatusOr<ProcessResult> result = env.RunProcess(spec, nullptr, nullptr);
  if (!result.ok()) return result.status();
  return result->exit_code == 0 ? absl::OkStatus() : absl::UnavailableError(result->output);
}

}  // namespace

std::string_view RungName(spawn::Rung rung) {
  switch (rung) {
    case spawn::Rung::kWall:
      return "wall";
    case spawn::Rung::kLandlock:
      return "landlock";
    case spawn::Rung::kNone:
      break;
  }
  return "none";
}

Sandbox FindSandbox(Env& env, SandboxChoice choice) {
  if (choice == SandboxChoice::kNone) return {};
  std::string lack;
  if (choice == SandboxChoice::kBest) {
    const absl::Status wall = Try(env, spawn::Rung::kWall);
    if (wall.ok()) return {.rung = spawn::Rung::kWall};
    lack = StrCat("no wall of namespaces (", wall.message(), "): ", kRemedy);
  }
  const absl::Status landlock = Try(env, spawn::Rung::kLandlock);
  if (landlock.ok()) return {.rung = spawn::Rung::kLandlock, .lack = lack};
  StrAppend(&lack, lack.empty() ? "" : "; ", "no Landlock (", landlock.message(), "): it needs Linux 5.13");
  return {.lack = lack};
}

}  // namespace kernix::exec
