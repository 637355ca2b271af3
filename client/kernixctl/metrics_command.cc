// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "client/kernixctl/command.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(The metrics since the start of the daemon, in Prometheus' text format. Only for the daemon's
administrators. Never starts a daemon: exit code 3 means that none is running.

Examples:
  kernixctl metrics
  kernixctl --address unix:/run/kernix/kernixd.sock metrics > /var/lib/node_exporter/kernix.prom)";

int Run(const GlobalOptions& options) {
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
      .details = kDetails,
      .run = [&options] { return Run(options); },
  };
}

}  // namespace kernix::ctl
