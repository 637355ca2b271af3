// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "client/kernixctl/command.h"

namespace kernix::ctl {
namespace {

constexpr char kFooter[] =
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

void AddMetrics(CLI::App& app, const GlobalOptions& options, Subcommand& chosen) {
  CLI::App* command = app.add_subcommand("metrics", "Print the daemon's metrics");
  command->footer(kFooter);
  command->callback([&options, &chosen] { chosen = [&options] { return Run(options); }; });
}

}  // namespace kernix::ctl
