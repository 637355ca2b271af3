// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/sandbox.h"

#include <vector>

#include "common/base/strings.h"

namespace kernix::exec {
namespace {

constexpr std::string_view kRemedy =
    "see docs/operations.md, \"What keeps compilers from the machine\", for what containers and Ubuntu need";

// OK if a program runs on this rung; kUnavailable if there is no such rung here.
absl::Status Try(Env& env, spawn::Rung rung, bool shows_machine) {
  const std::vector<std::string> readable = shows_machine ? std::vector<std::string>{"/"} : std::vector<std::string>{};
  const ProcessSpec spec{
      .argv = {"/bin/true"}, .environment = {}, .enclosure = {.rung = rung, .readable = readable, .scratch = ""}};
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

Sandbox FindSandbox(Env& env, SandboxChoice choice, bool shows_machine) {
  if (choice == SandboxChoice::kNone) return {};
  std::string lack;
  if (choice == SandboxChoice::kBest) {
    const absl::Status wall = Try(env, spawn::Rung::kWall, shows_machine);
    if (wall.ok()) return {.rung = spawn::Rung::kWall, .lack = ""};
    if (!absl::IsUnavailable(wall)) return {.lack = std::string(wall.message())};
    lack = StrCat("no wall of namespaces (", wall.message(), "): ", kRemedy);
  }
  const absl::Status landlock = Try(env, spawn::Rung::kLandlock, shows_machine);
  if (landlock.ok()) return {.rung = spawn::Rung::kLandlock, .lack = lack};
  StrAppend(&lack, lack.empty() ? "" : "; ", "no Landlock (", landlock.message(), "), which needs Linux 5.13");
  return {.lack = lack};
}

}  // namespace kernix::exec
