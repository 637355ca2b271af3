// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"

namespace kernix::ctl {
namespace {

constexpr char kFooter[] = R"(Never starts a daemon: exit code 3 means that none is running.

Examples:
  kernixctl status
  kernixctl status --json
  kernixctl --address unix:/run/kernix/kernixd.sock status)";

std::string Json(const DaemonInfo& info) {
  return JsonObject()
      .Text("address", info.address)
      .Text("version", info.version)
      .Text("build_id", info.build_id)
      .Number("pid", info.pid)
      .Number("uptime_ms", info.uptime_ms)
      .Text("store_directory", info.store_directory)
      .Boolean("shared", info.shared)
      .Boolean("draining", info.draining)
      .Number("running_jobs", uint64_t{info.running_jobs})
      .Number("queued_jobs", uint64_t{info.queued_jobs})
      .Str();
}

std::string Text(const DaemonInfo& info) {
  return FormatTable({{"address", info.address},
                      {"version", info.version + " (build " + info.build_id + ")"},
                      {"process", std::to_string(info.pid)},
                      {"running for", FormatDuration(std::chrono::milliseconds(info.uptime_ms))},
                      {"store", info.store_directory},
                      {"serves", info.shared ? "several users" : "one user"},
                      {"jobs", std::to_string(info.running_jobs) + " running, " + std::to_string(info.queued_jobs) +
                                   " queued" + (info.draining ? "; stopping" : "")}});
}

int Run(const GlobalOptions& options, bool json) {
  return WithClient(options, [json](Client& client) -> int {
    const absl::StatusOr<DaemonInfo> info = client.Info(/*start=*/false);
    if (!info.ok()) return Fail(info.status());
    std::cout << (json ? Json(*info) + "\n" : Text(*info));
    return kOk;
  });
}

}  // namespace

void AddStatus(CLI::App& app, const GlobalOptions& options, Subcommand& chosen) {
  CLI::App* command = app.add_subcommand("status", "Show which daemon answers, and its state");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object");
  command->footer(kFooter);
  command->callback([&options, &chosen, json] { chosen = [&options, json] { return Run(options, *json); }; });
}

}  // namespace kernix::ctl
