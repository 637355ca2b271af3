// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/rpc/kernix_service.h"

namespace kernix::server {
namespace {

void AddLoads(const Backend& backend, const Identity& caller, bool all, v1::GetStatusResponse& response) {
  for (v1::RunningLoad& load : backend.gate.List(backend.env.Now())) {
    if (all || load.owner() == ToNumber(caller.id())) {
      *response.add_load() = std::move(load);
    } else {
      response.set_hidden_loads(response.hidden_loads() + 1);
    }
  }
}

std::string PathsOf(const v1::ToolchainPaths& paths) {
  return paths.nvcc().empty() ? paths.host_compiler() : StrCat(paths.host_compiler(), ", ", paths.nvcc());
}

v1::ToolchainHealth HealthOf(const Backend& backend, const std::string& name, const v1::ToolchainPaths& paths,
                             v1::Language language) {
  v1::ToolchainHealth health;
  health.set_name(name);
  const absl::StatusOr<toolchain::ToolchainPtr> found = backend.compilers.Resolve(paths, language);
  if (found.ok()) {
    health.set_tools(DescribeTools(**found));
    if ((*found)->cuda) health.set_problem((*found)->cuda->host_refusal);
  } else {
    health.set_tools(PathsOf(paths));
    health.set_problem(GetErrorDetail(found.status()).message());
  }
  return health;
}

// Of a daemon without registered toolchains: those that loads have used.
void AddToolchains(const Backend& backend, v1::GetStatusResponse& response) {
  const std::vector<RegisteredToolchain> registered = backend.toolchains.Registered();
  for (const RegisteredToolchain& toolchain : registered) {
    *response.add_toolchain() =
        HealthOf(backend, toolchain.name, toolchain.paths, toolchain::LanguageOf(toolchain.paths));
  }
  if (!registered.empty()) return;
  for (const toolchain::UsedTools& used : backend.compilers.Used()) {
    *response.add_toolchain() = HealthOf(backend, "", used.paths, used.language);
  }
}

absl::Status AddCache(const Backend& backend, const Identity& caller, bool all, v1::GetStatusResponse& response) {
  KERNIX_ASSIGN_OR_RETURN(const auto holders, backend.cache.Holders());
  uint64_t hidden = 0;
  for (const auto& [user, held] : holders) {
    if (!all && user != caller.id()) {
      hidden += held.tags;
    } else if (held.tags > 0) {
      v1::CacheShare& share = *response.add_cache();
      share.set_owner(ToNumber(user));
      share.set_entries(held.tags);
      share.set_bytes(held.bytes);
    }
  }
  std::sort(response.mutable_cache()->begin(), response.mutable_cache()->end(),
            [](const auto& one, const auto& other) { return one.bytes() > other.bytes(); });
  response.set_hidden_entries(hidden);
  return absl::OkStatus();
}

// An engine that is broken has said so elsewhere.
std::string WhyNoSteps(const Backend& backend, const remote::UpstreamState& state) {
  if (backend.options.placements.AllLocal()) return "";
  if (state.facts && !state.facts->executes) {
    return "the engine runs no actions: it is only a cache. Name one that has workers, or leave upstream.steps out";
  }
  const std::optional<std::string> why = backend.pause->why();
  if (!why) return "";
  return StrCat(*why, ". Until a worker takes a step, steps run here if they can, except for one a minute");
}

void AddUpstream(const Backend& backend, v1::GetStatusResponse& response) {
  if (backend.upstream == nullptr) return;
  const remote::UpstreamState state = backend.upstream->state();
  v1::UpstreamStatus& proto = *response.mutable_upstream();
  proto.set_address(backend.upstream->address());
  proto.set_health(state.health);
  proto.set_since_unix_ms(state.since_unix_ms);
  proto.set_last_error(state.last_error);
  proto.set_reads(backend.options.reads_upstream);
  proto.set_writes(backend.options.writes_upstream);
  proto.set_refuses_writes(state.facts && !state.facts->may_write_results);
  const exec::Placements& placements = backend.options.placements;
  proto.set_host_compiles(std::string(exec::PlacementName(placements.host_compiles)));
  proto.set_device_compiles(std::string(exec::PlacementName(placements.device_compiles)));
  proto.set_links(std::string(exec::PlacementName(placements.links)));
  proto.set_refuses_steps(WhyNoSteps(backend, state));
}

}  // namespace

absl::StatusOr<v1::GetStatusResponse> StatusFor(const Backend& backend, const Identity& caller) {
  v1::GetStatusResponse response;
  const bool all = caller.IsAdministrator();
  AddLoads(backend, caller, all, response);
  AddToolchains(backend, response);
  AddUpstream(backend, response);
  response.mutable_inherited()->Assign(backend.options.inherited.begin(), backend.options.inherited.end());
  response.set_sandbox(std::string(exec::RungName(backend.options.sandbox.rung)));
  response.set_sandbox_lack(backend.options.sandbox.lack);
  KERNIX_RETURN_IF_ERROR(AddCache(backend, caller, all, response));
  return response;
}

}  // namespace kernix::server
