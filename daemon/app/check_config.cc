// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/check_config.h"

#include <cstdio>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/app/sharing.h"
#include "daemon/toolchain/toolchain.h"
#include "daemon/transport/user_groups.h"

namespace kernix::server {
namespace {

// Appends the problem of `status`, if it is one, with `place` before it.
void Note(const std::string& place, const absl::Status& status, std::vector<std::string>& problems) {
  if (!status.ok()) problems.push_back(StrCat(place, GetErrorDetail(status).message()));
}

void CheckGroup(const ServerOptions& options, const char* setting, const std::string& group,
                std::vector<std::string>& problems) {
  if (!group.empty()) Note(options.PlaceOf(setting), GroupId(setting, group).status(), problems);
}

absl::Status CheckToolchain(toolchain::ToolchainRegistry& registry, const RegisteredToolchain& toolchain) {
  const auto found = registry.Resolve(toolchain.paths, LanguageOf(toolchain));
  if (!found.ok()) return found.status();
  const std::string refusal = (*found)->cuda ? (*found)->cuda->host_refusal : "";
  return refusal.empty() ? absl::OkStatus() : absl::FailedPreconditionError(refusal);
}

}  // namespace

std::vector<std::string> ProblemsHere(Env& env, const ServerOptions& options) {
  std::vector<std::string> problems;
  CheckGroup(options, "socket_group", options.socket_group, problems);
  CheckGroup(options, "admin_group", options.admin_group, problems);
  toolchain::ToolchainRegistry registry(env, "host_compiler", options.toolchain_description);
  if (!options.toolchain_description.empty()) {
    Note(options.PlaceOf("toolchain_description"), registry.Resolve({}, v1::LANGUAGE_CPP).status(), problems);
  }
  for (const RegisteredToolchain& toolchain : options.toolchains) {
    Note(StrCat(toolchain.place, "toolchain \"", toolchain.name, "\": "), CheckToolchain(registry, toolchain),
         problems);
  }
  Note("", Sharing::Open(env, options).status(), problems);
  return problems;
}

int CheckConfig(Env& env, const ServerOptions& options) {
  const std::vector<std::string> problems = ProblemsHere(env, options);
  for (const std::string& problem : problems) std::fprintf(stderr, "kernixd: %s\n", problem.c_str());
  if (problems.empty()) std::puts("kernixd: the configuration is good");
  return problems.empty() ? kExitOk : kExitUsage;
}

}  // namespace kernix::server
