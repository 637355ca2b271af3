// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Waits until the daemon is gone. The daemon accepts no new loads and lets running ones finish, up to a
time limit. The next load starts a new daemon, unless it is the machine's service. Exit code 3 means that no
daemon is running.

Examples:
  kernixctl shutdown
  kernixctl shutdown --drain 5s)";

int Run(const GlobalOptions& options, const std::string& drain) {
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
          .details = kDetails,
          .options = {{"--drain", drain.get(),
                       "How long running loads may continue: 5s, 1m (default: the daemon's setting)"}},
          .run = [&options, drain] { return Run(options, *drain); }};
}

}  // namespace kernix::ctl
