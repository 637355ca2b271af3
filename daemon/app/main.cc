// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/spawner.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/app/daemon.h"
#include "daemon/app/options.h"
#include "daemon/app/own_process.h"
#include "daemon/app/sharing.h"
#include "daemon/toolchain/description.h"
#include "daemon/toolchain/toolchain.h"
#include "daemon/transport/local_user.h"

namespace kernix::server {
namespace {

// Where the client that starts kernixd listens (client/connection/daemon_process.h).
constexpr int kStartReport = 3;

// Appends the problem of `status`, if it is one, with `origin` before it.
void Note(const std::string& origin, const absl::Status& status, std::vector<std::string>& problems) {
  if (!status.ok()) problems.push_back(StrCat(origin, GetErrorDetail(status).message()));
}

void CheckGroup(const ServerOptions& options, const char* setting, const std::string& group,
                std::vector<std::string>& problems) {
  if (!group.empty()) Note(options.OriginOf(setting), GroupId(setting, group).status(), problems);
}

absl::Status CheckToolchain(toolchain::ToolchainRegistry& registry, const RegisteredToolchain& toolchain) {
  const auto found = registry.Resolve(toolchain.paths, toolchain::LanguageOf(toolchain.paths));
  if (!found.ok()) return found.status();
  const std::string refusal = (*found)->cuda ? (*found)->cuda->host_refusal : "";
  return refusal.empty() ? absl::OkStatus() : absl::FailedPreconditionError(refusal);
}

// From now on, tools run where `options` say, and nowhere else.
exec::Sandbox LookForSandbox(Env& env, const ServerOptions& options) {
  if (!options.spawn_socket.empty()) spawn::Spawner::Get().SetSocket(options.spawn_socket);
  exec::Sandbox found = exec::FindSandbox(env, options.sandbox, /*shows_machine=*/!options.shared);
  spawn::Spawner::Get().SetFloor(found.rung, /*shows_machine=*/!options.shared);
  return found;
}

// The problems of options that are consistent by themselves: groups that do not exist, toolchains that do not work.
// Each with its line in the file. Runs the compilers' queries.
std::vector<std::string> ProblemsHere(Env& env, const ServerOptions& options) {
  std::vector<std::string> problems;
  const exec::Sandbox sandbox = LookForSandbox(env, options);
  CheckGroup(options, "socket_group", options.socket_group, problems);
  CheckGroup(options, "admin_group", options.admin_group, problems);
  toolchain::ToolchainRegistry registry(env, "host_compiler", options.toolchain_description);
  if (!options.toolchain_description.empty()) {
    Note(options.OriginOf("toolchain_description"), registry.Resolve({}, v1::LANGUAGE_CPP).status(), problems);
  }
  for (const RegisteredToolchain& toolchain : options.toolchains) {
    Note(StrCat(toolchain.origin, "toolchain \"", toolchain.name, "\": "), CheckToolchain(registry, toolchain),
         problems);
  }
  Note("", CheckSandbox(options, sandbox), problems);
  Note("", Sharing::Open(env, options).status(), problems);
  return problems;
}

// Prints what ProblemsHere() finds on stderr, or on stdout that the configuration is good. Returns a KernixdExit.
int CheckConfig(Env& env, const ServerOptions& options) {
  const std::vector<std::string> problems = ProblemsHere(env, options);
  for (const std::string& problem : problems) std::fprintf(stderr, "kernixd: %s\n", problem.c_str());
  if (problems.empty()) std::puts("kernixd: the configuration is good");
  return problems.empty() ? kExitOk : kExitUsage;
}

// The described tools, for people.
absl::StatusOr<std::string> Describe(Env& env, const DescriptionTask& task) {
  toolchain::ToolchainRegistry registry(env, "--host-compiler");
  KERNIX_ASSIGN_OR_RETURN(const toolchain::ToolchainPtr tools,
                          registry.Resolve(task.paths, toolchain::LanguageOf(task.paths)));
  KERNIX_ASSIGN_OR_RETURN(const std::string text, toolchain::DescribeToolchain(env, registry.digests(), *tools));
  KERNIX_RETURN_IF_ERROR(env.WriteFileDurably(task.output, text, 0644));
  return toolchain::DescribeTools(*tools);
}

// Writes the description, and prints the described tools to stdout, or the error to stderr. Returns a KernixdExit.
int DescribeTools(Env& env, const DescriptionTask& task) {
  const absl::StatusOr<std::string> described = Describe(env, task);
  if (!described.ok()) {
    std::fprintf(stderr, "kernixd: %s\n", GetErrorDetail(described.status()).message().c_str());
    return kExitFailure;
  }
  std::printf("kernixd: %s describes %s\n", task.output.c_str(), described->c_str());
  return kExitOk;
}

// Each client needs two descriptors, each job a few.
constexpr rlim_t kWantedDescriptors = 65'536;

void RaiseDescriptorLimit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWantedDescriptors) return;
  limit.rlim_cur = std::min(limit.rlim_max, kWantedDescriptors);
  setrlimit(RLIMIT_NOFILE, &limit);
}

ReadOptions Rereading(Env& env, const std::vector<std::string>& arguments) {
  return [&env, arguments]() -> absl::StatusOr<ServerOptions> {
    ParsedCommandLine parsed = ParseCommandLine(env, ProcessGetEnv, arguments);
    if (parsed.exit_now) return absl::InvalidArgumentError(absl::StripAsciiWhitespace(parsed.text));
    return std::move(parsed.options);
  };
}

int Serve(Env& env, ServerOptions options, ReadOptions read) {
  SetLogLevel(options.log_level);
  LimitArenas();
  RouteGrpcLog();
  if (options.started_by_client) options.inherited = ShedInherited();
  for (const std::string& left : options.inherited) Log(LogLevel::kWarning, "inherited", {{"has", left}});
  RaiseDescriptorLimit();
  options.found_sandbox = LookForSandbox(env, options);
  absl::StatusOr<StopSignals> signals = StopSignals::Take();
  if (signals.ok()) return Daemon(env, std::move(options), std::move(read), *std::move(signals)).Run();
  Log(LogLevel::kError, "start_failed", {{"error", signals.status().message()}});
  return kExitFailure;
}

// Runs a daemon to its end: opens the store, binds the socket (or takes it from systemd), serves, reports READY=1, and
// drains and stops on SIGTERM, SIGINT, Shutdown() or idleness. `read` reads the options again when the daemon is told
// to; may be null. Logs; returns a KernixdExit.
int RunServer(Env& env, ServerOptions options, ReadOptions read) {
  const bool is_detached = options.started_by_client && Detach(kStartReport);
  const int exit_code = Serve(env, std::move(options), std::move(read));
  if (is_detached) ReportEnd(kStartReport, exit_code);
  return exit_code;
}

int Main(const std::vector<std::string>& arguments) {
  Env& env = Env::Posix();
  const ParsedCommandLine parsed = ParseCommandLine(env, ProcessGetEnv, arguments);
  if (!parsed.exit_now) {
    if (parsed.describe) return DescribeTools(env, *parsed.describe);
    if (parsed.check_only) return CheckConfig(env, parsed.options);
    return RunServer(env, parsed.options, parsed.has_config ? Rereading(env, arguments) : nullptr);
  }
  std::fputs(parsed.text.c_str(), parsed.exit_code == kExitOk ? stdout : stderr);
  return parsed.exit_code;
}

}  // namespace
}  // namespace kernix::server

int main(int argc, char** argv) { return kernix::server::Main({argv + std::min(argc, 1), argv + argc}); }
