// SPDX-License-Identifier: Apache-2.0
//
// What an administrator asks of a daemon: `kernixctl metrics`, `reload` and `shutdown`.
#include <iostream>
#include <memory>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "common/base/json.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

constexpr char kMetricsDetails[] =
    R"(The metrics since the start of the daemon, in Prometheus' text format. Only for the daemon's
administrators. Never starts a daemon: exit code 3 means that none is running.

Examples:
  kernixctl metrics
  kernixctl --address unix:/run/kernix/kernixd.sock metrics > /var/lib/node_exporter/kernix.prom)";

int RunMetrics(const GlobalOptions& options) {
  return WithClient(options, [](Client& client) -> int {
    const absl::StatusOr<std::string> metrics = client.Metrics();
    if (!metrics.ok()) return Fail(metrics.status());
    std::cout << *metrics;
    return kOk;
  });
}

}  // namespace

Command MetricsCommand(const GlobalOptions& options) {
  return {
      .name = "metrics",
      .summary = "Print the daemon's metrics",
      .details = kMetricsDetails,
      .run = [&options] { return RunMetrics(options); },
  };
}

namespace {

constexpr char kReloadDetails[] =
    R"(Has the daemon read its config file again, as SIGHUP does, and prints which settings have changed and which
change only at its next start. If the file is wrong, nothing changes. Only for the daemon's administrators. Never
starts a daemon: exit code 3 means that none is running.

Examples:
  kernixctl --address unix:/run/kernix/kernixd.sock reload
  kernixctl reload --json)";

std::string ReloadJson(const ReloadResult& result) {
  return JsonObject()
             .Json("applied", JsonStrings(result.applied))
             .Json("needs_restart", JsonStrings(result.needs_restart))
             .Str() +
         "\n";
}

std::string ReloadText(const ReloadResult& result) {
  std::string text =
      result.applied.empty() ? "nothing has changed\n" : StrCat("changed: ", absl::StrJoin(result.applied, ", "), "\n");
  if (!result.needs_restart.empty()) {
    StrAppend(&text, "restart kernixd to change: ", absl::StrJoin(result.needs_restart, ", "), "\n");
  }
  return text;
}

int RunReload(const GlobalOptions& options, bool json) {
  return WithClient(options, [json](Client& client) -> int {
    const absl::StatusOr<ReloadResult> result = client.Reload();
    if (!result.ok()) return Fail(result.status());
    std::cout << (json ? ReloadJson(*result) : ReloadText(*result));
    return kOk;
  });
}

}  // namespace

Command ReloadCommand(const GlobalOptions& options) {
  const auto json = std::make_shared<bool>(false);
  return {.name = "reload",
          .summary = "Have the daemon read its config file again",
          .details = kReloadDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, json] { return RunReload(options, *json); }};
}

namespace {

constexpr char kShutdownDetails[] =
    R"(Waits until the daemon is gone. The daemon accepts no new loads and lets running ones finish, up to a
time limit. The next load starts a new daemon, unless it is the machine's service. Exit code 3 means that no
daemon is running.

Examples:
  kernixctl shutdown
  kernixctl shutdown --drain 5s)";

int RunShutdown(const GlobalOptions& options, const std::string& drain) {
  std::chrono::milliseconds timeout{0};
  if (!drain.empty()) {
    const absl::StatusOr<std::chrono::milliseconds> parsed = ParseAge(drain);
    if (!parsed.ok()) return RefuseUsage(ToStd(parsed.status().message()));
    timeout = *parsed;
  }
  return WithClient(options, [timeout](Client& client) -> int {
    const absl::Status status = client.Shutdown(timeout);
    if (!status.ok()) return Fail(status);
    std::cout << "stopped\n";
    return kOk;
  });
}

}  // namespace

Command ShutdownCommand(const GlobalOptions& options) {
  const auto drain = std::make_shared<std::string>();
  return {.name = "shutdown",
          .summary = "Stop the daemon",
          .details = kShutdownDetails,
          .options = {{"--drain", drain.get(),
                       "How long running loads may continue: 5s, 1m (default: the daemon's setting)"}},
          .run = [&options, drain] { return RunShutdown(options, *drain); }};
}

}  // namespace kernix::ctl
