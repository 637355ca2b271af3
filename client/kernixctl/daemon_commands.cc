// SPDX-License-Identifier: Apache-2.0
//
// The commands about the daemon itself: `kernixctl status`, and what an administrator asks of it, `metrics`, `reload`
// and `shutdown`.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/reports.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kStatusDetails[] =
    R"(Shows the daemon, its running loads, its compilers, its upstream and the cache by user, with their problems.
Users see only the number of others' loads and entries; administrators see everything. Never starts a daemon: exit
code 3 means that none is running.

Examples:
  kernixctl status
  kernixctl status --json
  kernixctl --address unix:/run/kernix/kernixd.sock status)";

struct Report {
  DaemonInfo info;
  v1::GetStatusResponse status;
};

absl::StatusOr<Report> Ask(DaemonClient& client) {
  Report report;
  KERNIX_ASSIGN_OR_RETURN(report.info, client.Info(/*start=*/false));
  KERNIX_ASSIGN_OR_RETURN(report.status, client.Ask<v1::GetStatusResponse>("GetStatus", v1::GetStatusRequest()));
  return report;
}

const char* StateName(v1::Progress::State state) {
  if (state == v1::Progress::QUEUED) return "queued";
  return state == v1::Progress::RUNNING ? "running" : "starting";
}

// One failure does not make it broken, but users should see it.
const char* HealthName(const v1::UpstreamStatus& upstream) {
  if (upstream.health() == v1::UpstreamStatus::ANSWERS) return "answers";
  if (upstream.health() == v1::UpstreamStatus::BROKEN) return "broken";
  return upstream.last_error().empty() ? "not asked yet" : "fails";
}

// --- Status: JSON

std::string Json(const v1::RunningLoad& load) {
  const v1::Progress& progress = load.progress();
  return FieldsOf(load)
      .Text("user", DescribeUser(load.owner()))
      .Json("sources", JsonOfTexts(load.source()))
      .Text("state", StateName(progress.state()))
      .Text("step", progress.step())
      .Number("steps_done", uint64_t{progress.steps_done()})
      .Number("steps_total", uint64_t{progress.steps_total()})
      .Number("queue_position", uint64_t{progress.queue_position()})
      .Str();
}

std::string Json(const v1::ToolchainHealth& toolchain) { return FieldsOf(toolchain).Str(); }

std::string Json(const v1::CacheShare& share) {
  return FieldsOf(share).Text("user", DescribeUser(share.owner())).Str();
}

std::string Json(const v1::UpstreamStatus& upstream) {
  return FieldsOf(upstream).Text("health", HealthName(upstream)).Str();
}

std::string Json(const Report& report) {
  const DaemonInfo& info = report.info;
  const v1::GetStatusResponse& status = report.status;
  const auto json = [](const auto& part) { return Json(part); };
  JsonObject object;
  object.Text("address", info.address)
      .Text("version", info.version)
      .Text("build_id", info.build_id)
      .Number("pid", info.pid)
      .Number("uptime_ms", info.uptime_ms)
      .Text("store_directory", info.store_directory)
      .Boolean("shared", info.shared)
      .Boolean("draining", info.draining)
      .Number("running_jobs", uint64_t{info.running_jobs})
      .Number("queued_jobs", uint64_t{info.queued_jobs})
      .Json("loads", JsonOfAll(status.load(), json))
      .Number("hidden_loads", uint64_t{status.hidden_loads()})
      .Json("toolchains", JsonOfAll(status.toolchain(), json))
      .Json("cache", JsonOfAll(status.cache(), json))
      .Number("hidden_entries", status.hidden_entries())
      .Json("inherited", JsonOfTexts(status.inherited()))
      .Text("sandbox", status.sandbox())
      .Text("sandbox_lack", status.sandbox_lack());
  if (status.has_upstream()) object.Json("upstream", Json(status.upstream()));
  return object.Str() + "\n";
}

// --- Status: text

std::string Text(const DaemonInfo& info) {
  const std::string lack = LackOfStore(info);
  return FormatTable({{"address", info.address},
                      {"version", StrCat(info.version, " (build ", info.build_id, ")")},
                      {"process", StrCat(info.pid)},
                      {"running for", FormatDuration(std::chrono::milliseconds(info.uptime_ms))},
                      {"store", StrCat(info.store_directory, StoresRead(info))},
                      {"serves", info.shared ? "several users" : "one user"},
                      {"jobs", StrCat(info.running_jobs, " running, ", info.queued_jobs, " queued",
                                      info.draining ? "; stopping" : "")}}) +
         (lack.empty() ? "" : lack + "\n");
}

// `title`, then the table without its last line break if there are rows below the heading.
std::string Section(const std::string& title, const std::vector<std::vector<std::string>>& rows,
                    const std::string& remark) {
  std::string text = StrCat("\n", title, "\n");
  if (rows.size() > 1) StrAppend(&text, FormatTable(rows));
  return StrCat(text, remark);
}

std::string HiddenRemark(uint64_t hidden, std::string_view what) {
  return hidden == 0 ? "" : StrCat(hidden, " ", what, " of other users\n");
}

std::string InheritedText(const v1::GetStatusResponse& status) {
  if (status.inherited().empty()) return "";
  return StrCat("inherited from the program that started it: ", absl::StrJoin(status.inherited(), ", "), "\n");
}

std::string SandboxText(const v1::GetStatusResponse& status) {
  if (status.sandbox_lack().empty()) return "";
  return StrCat("compilers are kept by ", status.sandbox() == "none" ? "nothing" : status.sandbox(), ": ",
                status.sandbox_lack(), "\n");
}

std::string LoadsText(const v1::GetStatusResponse& status) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "OWNER", "FOR", "STATE", "SOURCES"}};
  for (const v1::RunningLoad& load : status.load()) {
    rows.push_back({load.name(), DescribeUser(load.owner()),
                    FormatDuration(std::chrono::milliseconds(load.elapsed_ms())), ProgressText(load.progress()),
                    absl::StrJoin(load.source(), ", ")});
  }
  const bool none = status.load().empty() && status.hidden_loads() == 0;
  return Section("LOADS", rows, none ? "none\n" : HiddenRemark(status.hidden_loads(), "loads"));
}

std::string ToolchainsText(const v1::GetStatusResponse& status) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "STATE", "TOOLS"}};
  for (const v1::ToolchainHealth& toolchain : status.toolchain()) {
    rows.push_back({toolchain.name().empty() ? "-" : toolchain.name(),
                    toolchain.problem().empty() ? "ok" : "unusable: " + toolchain.problem(), toolchain.tools()});
  }
  return Section("TOOLCHAINS", rows, status.toolchain().empty() ? "none used yet\n" : "");
}

std::string CacheText(const v1::GetStatusResponse& status) {
  std::vector<std::vector<std::string>> rows = {{"OWNER", "ENTRIES", "SIZE"}};
  for (const v1::CacheShare& share : status.cache()) {
    rows.push_back({DescribeUser(share.owner()), StrCat(share.entries()), FormatBytes(share.bytes())});
  }
  const bool none = status.cache().empty() && status.hidden_entries() == 0;
  return Section("CACHE", rows, none ? "empty\n" : HiddenRemark(status.hidden_entries(), "entries"));
}

std::string UseOf(const v1::UpstreamStatus& upstream) {
  if (upstream.writes() && upstream.refuses_writes()) return "read only: it lets nobody write";
  if (upstream.reads() && upstream.writes()) return "read, write";
  return upstream.reads() ? "read" : upstream.writes() ? "write" : "none";
}

std::string StepsOf(const v1::UpstreamStatus& upstream) {
  if (upstream.host_compiles() == upstream.device_compiles() && upstream.host_compiles() == upstream.links()) {
    return upstream.host_compiles();
  }
  return StrCat("host compiles ", upstream.host_compiles(), ", device compiles ", upstream.device_compiles(),
                ", links ", upstream.links());
}

std::string UpstreamText(const v1::GetStatusResponse& status) {
  if (!status.has_upstream()) return "";
  const v1::UpstreamStatus& upstream = status.upstream();
  const int64_t since = upstream.since_unix_ms();
  const bool is_well = upstream.health() == v1::UpstreamStatus::ANSWERS || upstream.last_error().empty();
  std::string remark = is_well ? "" : Printable(upstream.last_error()) + "\n";
  if (!upstream.refuses_steps().empty()) {
    StrAppend(&remark, "no steps run there: ", Printable(upstream.refuses_steps()), "\n");
  }
  return Section("UPSTREAM",
                 {{"ADDRESS", "STATE", "USE", "STEPS"},
                  {upstream.address(), StrCat(HealthName(upstream), since > 0 ? " since " + FormatTime(since) : ""),
                   UseOf(upstream), StepsOf(upstream)}},
                 remark);
}

std::string Text(const Report& report) {
  return StrCat(Text(report.info), InheritedText(report.status), SandboxText(report.status), LoadsText(report.status),
                ToolchainsText(report.status), UpstreamText(report.status), CacheText(report.status));
}

// --- Metrics, reload, shutdown

constexpr char kMetricsDetails[] =
    R"(Prints the metrics since the start of the daemon, in Prometheus' text format. `kernixctl web` serves
them. Never starts a daemon: exit code 3 means that none is running.

Examples:
  kernixctl metrics
  kernixctl --address unix:/run/kernix/kernixd.sock metrics > /var/lib/node_exporter/kernix.prom)";

constexpr char kReloadDetails[] =
    R"(Has the daemon read its config file again, as SIGHUP does, and prints the settings that have changed, and
those that change only at its next start. If the file is wrong, nothing changes. Only for the daemon's
administrators. Never starts a daemon: exit code 3 means that none is running.

Examples:
  kernixctl --address unix:/run/kernix/kernixd.sock reload
  kernixctl reload --json)";

std::string Json(const v1::ReloadResponse& response) {
  return JsonObject()
             .Json("applied", JsonOfTexts(response.applied()))
             .Json("needs_restart", JsonOfTexts(response.needs_restart()))
             .Str() +
         "\n";
}

std::string Text(const v1::ReloadResponse& response) {
  std::string text = response.applied().empty() ? "nothing has changed\n"
                                                : StrCat("changed: ", absl::StrJoin(response.applied(), ", "), "\n");
  if (!response.needs_restart().empty()) {
    StrAppend(&text, "restart kernixd to change: ", absl::StrJoin(response.needs_restart(), ", "), "\n");
  }
  return text;
}

constexpr char kShutdownDetails[] =
    R"(Waits until the daemon is gone. The daemon accepts no new loads and lets running ones finish, up to a
time limit. The next load starts a new daemon, unless it is the machine's service. Exit code 3 means that no
daemon is running.

Examples:
  kernixctl shutdown
  kernixctl shutdown --drain 5s)";

int RunShutdown(const ClientOptions& options, const std::string& drain) {
  std::chrono::milliseconds timeout{0};
  if (!drain.empty()) {
    const absl::StatusOr<std::chrono::milliseconds> parsed = ParseAge(drain);
    if (!parsed.ok()) return RefuseUsage(ToStd(parsed.status().message()));
    timeout = *parsed;
  }
  return PrintAnswer(options, [timeout](Client& client) -> absl::StatusOr<std::string> {
    KERNIX_RETURN_IF_ERROR(client.Shutdown(timeout));
    return "stopped\n";
  });
}

}  // namespace

std::string StoresRead(const DaemonInfo& info) {
  return info.read_stores.empty() ? "" : StrCat(", reads ", absl::StrJoin(info.read_stores, ", "));
}

std::string LackOfStore(const DaemonInfo& info) {
  const std::string& named = info.unwritable_store;
  if (named.empty()) return "";
  if (access(named.c_str(), W_OK) == 0) {
    return StrCat(named,
                  " could not be written when kernixd started: `kernixctl shutdown`, and the next load writes it");
  }
  const std::string why = std::strerror(errno);
  const bool is_read = std::find(info.read_stores.begin(), info.read_stores.end(), named) != info.read_stores.end();
  return StrCat(named, " cannot be written (", why, is_read ? "), so it is only read" : "), nor read",
                "; builds go to a store that lives as long as the runtime folder. To keep them, "
                "name a store of your own before it in KERNIX_CACHE_DIR");
}

std::string ProgressText(const v1::Progress& progress) {
  if (progress.state() == v1::Progress::QUEUED) return StrCat("queued, ", progress.queue_position(), " jobs ahead");
  if (progress.step().empty()) return StateName(progress.state());
  return StrCat(progress.step(), ", ", progress.steps_done(), " of ", progress.steps_total(), " steps done");
}

absl::StatusOr<std::string> Metrics(DaemonClient& client) {
  KERNIX_ASSIGN_OR_RETURN(auto response, client.Ask<v1::GetMetricsResponse>("GetMetrics", v1::GetMetricsRequest()));
  return std::move(*response.mutable_text());
}

absl::StatusOr<std::string> StatusJson(DaemonClient& client) {
  KERNIX_ASSIGN_OR_RETURN(const Report report, Ask(client));
  return Json(report);
}

Command StatusCommand(const ClientOptions& options) {
  const auto json = std::make_shared<bool>(false);
  const auto answer = [json](DaemonClient& client) -> absl::StatusOr<std::string> {
    if (*json) return StatusJson(client);
    KERNIX_ASSIGN_OR_RETURN(const Report report, Ask(client));
    return Text(report);
  };
  return {.name = "status",
          .summary = "Show the daemon and its work",
          .details = kStatusDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, answer] { return PrintAnswer(options, answer); }};
}

Command MetricsCommand(const ClientOptions& options) {
  return {.name = "metrics", .summary = "Print the daemon's metrics", .details = kMetricsDetails, .run = [&options] {
            return PrintAnswer(options, Metrics);
          }};
}

Command ReloadCommand(const ClientOptions& options) {
  const auto json = std::make_shared<bool>(false);
  const auto answer = [json](DaemonClient& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const auto response, client.Ask<v1::ReloadResponse>("Reload", v1::ReloadRequest()));
    return *json ? Json(response) : Text(response);
  };
  return {.name = "reload",
          .summary = "Have the daemon read its config file again",
          .details = kReloadDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, answer] { return PrintAnswer(options, answer); }};
}

Command ShutdownCommand(const ClientOptions& options) {
  const auto drain = std::make_shared<std::string>();
  return {.name = "shutdown",
          .summary = "Stop the daemon",
          .details = kShutdownDetails,
          .options = {{"--drain", drain.get(),
                       "How long running loads may continue: 5s, 1m (default: the daemon's setting)"}},
          .run = [&options, drain] { return RunShutdown(options, *drain); }};
}

}  // namespace kernix::ctl
