// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "daemon/app/check_config.h"
#include "daemon/app/daemon.h"
#include "daemon/app/describe_toolchain.h"
#include "daemon/app/detached.h"
#include "daemon/app/grpc_log.h"
#include "daemon/app/inherited.h"
#include "daemon/app/process_memory.h"
#include "daemon/app/stop_signals.h"

namespace kernix::server {
namespace {

// Where the client that starts kernixd listens (client/connection/daemon_process.h).
constexpr int kStartReport = 3;

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
  absl::StatusOr<StopSignals> signals = StopSignals::Take();
  if (signals.ok()) return Daemon(env, std::move(options), std::move(read), *std::move(signals)).Run();
  Log(LogLevel::kError, "start_failed", {{"error", signals.status().message()}});
  return kExitFailure;
}

}  // namespace

int RunServer(Env& env, ServerOptions options, ReadOptions read) {
  if (options.started_by_client) Detach(kStartReport);
  const bool reports = options.started_by_client;
  const int exit_code = Serve(env, std::move(options), std::move(read));
  if (reports) ReportEnd(kStartReport, exit_code);
  return exit_code;
}

int Main(int argc, char** argv) {
  Env& env = Env::Posix();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const ParsedCommandLine parsed = ParseCommandLine(env, ProcessGetEnv, arguments);
  if (!parsed.exit_now) {
    if (parsed.describe) return DescribeTools(env, *parsed.describe);
    if (parsed.check_only) return CheckConfig(env, parsed.options);
    return RunServer(env, parsed.options, parsed.has_config ? Rereading(env, arguments) : nullptr);
  }
  std::fputs(parsed.text.c_str(), parsed.exit_code == kExitOk ? stdout : stderr);
  return parsed.exit_code;
}

}  // namespace kernix::server
