// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>
#include <optional>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Shows the daemon, the loads that have not ended, the compilers and whether they can be used, the
upstream and whether it answers, and the cache by user. Of other users it shows numbers only; administrators see everything. Never starts a daemon: exit
code 3 means that none is running.

Examples:
  kernixctl status
  kernixctl status --json
  kernixctl --address unix:/run/kernix/kernixd.sock status)";

struct Report {
  DaemonInfo info;
  DaemonActivity activity;
};

// --- JSON
std::string Json(const RunningLoad& load) {
  return JsonObject()
      .Number("owner", uint64_t{load.owner})
      .Text("name", load.name)
      .Json("sources", JsonStrings(load.sources))
      .Text("state", load.state)
      .Text("step", load.step)
      .Number("steps_done", uint64_t{load.steps_done})
      .Number("steps_total", uint64_t{load.steps_total})
      .Number("queue_position", uint64_t{load.queue_position})
      .Number("elapsed_ms", load.elapsed_ms)
      .Str();
}

std::string Json(const ToolchainHealth& toolchain) {
  return JsonObject()
      .Text("name", toolchain.name)
      .Text("tools", toolchain.tools)
      .Text("problem", toolchain.problem)
      .Str();
}

std::string Json(const CacheShare& share) {
  return JsonObject()
      .Number("owner", uint64_t{share.owner})
      .Number("entries", share.entries)
      .Number("bytes", share.bytes)
      .Str();
}

std::string Json(const UpstreamStatus& upstream) {
  return JsonObject()
      .Text("address", upstream.address)
      .Text("health", upstream.health)
      .Number("since_unix_ms", upstream.since_unix_ms)
      .Text("last_error", upstream.last_error)
      .Boolean("reads", upstream.reads)
      .Boolean("writes", upstream.writes)
      .Boolean("refuses_writes", upstream.refuses_writes)
      .Text("host_compiles", upstream.host_compiles)
      .Text("device_compiles", upstream.device_compiles)
      .Text("links", upstream.links)
      .Text("refuses_steps", upstream.refuses_steps)
      .Str();
}

template <typename Element>
std::string JsonOfAll(const std::vector<Element>& elements) {
  std::vector<std::string> texts;
  for (const Element& element : elements) texts.push_back(Json(element));
  return JsonArray(texts);
}

std::string Json(const Report& report) {
  const DaemonInfo& info = report.info;
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
      .Json("loads", JsonOfAll(report.activity.loads))
      .Number("hidden_loads", uint64_t{report.activity.hidden_loads})
      .Json("toolchains", JsonOfAll(report.activity.toolchains))
      .Json("cache", JsonOfAll(report.activity.cache))
      .Number("hidden_entries", report.activity.hidden_entries)
      .Json("inherited", JsonStrings(report.activity.inherited));
  if (report.activity.upstream) object.Json("upstream", Json(*report.activity.upstream));
  return object.Str() + "\n";
}

// --- Text
std::string Text(const DaemonInfo& info) {
  return FormatTable({{"address", info.address},
                      {"version", StrCat(info.version, " (build ", info.build_id, ")")},
                      {"process", StrCat(info.pid)},
                      {"running for", FormatDuration(std::chrono::milliseconds(info.uptime_ms))},
                      {"store", info.store_directory},
                      {"serves", info.shared ? "several users" : "one user"},
                      {"jobs", StrCat(info.running_jobs, " running, ", info.queued_jobs, " queued",
                                      info.draining ? "; stopping" : "")}});
}

std::string StateOf(const RunningLoad& load) {
  if (load.state == "queued") return StrCat("queued, ", load.queue_position, " jobs ahead");
  if (load.step.empty()) return load.state;
  return StrCat(load.step, ", ", load.steps_done, " of ", load.steps_total, " steps done");
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

std::string InheritedText(const DaemonActivity& activity) {
  if (activity.inherited.empty()) return "";
  return StrCat("inherited from the program that started it: ", absl::StrJoin(activity.inherited, ", "), "\n");
}

std::string LoadsText(const DaemonActivity& activity) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "OWNER", "FOR", "STATE", "SOURCES"}};
  for (const RunningLoad& load : activity.loads) {
    rows.push_back({load.name, DescribeUser(load.owner), FormatDuration(std::chrono::milliseconds(load.elapsed_ms)),
                    StateOf(load), absl::StrJoin(load.sources, ", ")});
  }
  const bool none = activity.loads.empty() && activity.hidden_loads == 0;
  return Section("LOADS", rows, none ? "none\n" : HiddenRemark(activity.hidden_loads, "loads"));
}

std::string ToolchainsText(const DaemonActivity& activity) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "STATE", "TOOLS"}};
  for (const ToolchainHealth& toolchain : activity.toolchains) {
    rows.push_back({toolchain.name.empty() ? "-" : toolchain.name,
                    toolchain.problem.empty() ? "ok" : "unusable: " + toolchain.problem, toolchain.tools});
  }
  return Section("TOOLCHAINS", rows, activity.toolchains.empty() ? "none used yet\n" : "");
}

std::string CacheText(const DaemonActivity& activity) {
  std::vector<std::vector<std::string>> rows = {{"OWNER", "ENTRIES", "SIZE"}};
  for (const CacheShare& share : activity.cache) {
    rows.push_back({DescribeUser(share.owner), StrCat(share.entries), FormatBytes(share.bytes)});
  }
  const bool none = activity.cache.empty() && activity.hidden_entries == 0;
  return Section("CACHE", rows, none ? "empty\n" : HiddenRemark(activity.hidden_entries, "entries"));
}

std::string UseOf(const UpstreamStatus& upstream) {
  if (upstream.writes && upstream.refuses_writes) return "read only: it lets nobody write";
  if (upstream.reads && upstream.writes) return "read, write";
  return upstream.reads ? "read" : upstream.writes ? "write" : "none";
}

std::string StepsOf(const UpstreamStatus& upstream) {
  if (upstream.host_compiles == upstream.device_compiles && upstream.host_compiles == upstream.links) {
    return upstream.host_compiles;
  }
  return StrCat("host compiles ", upstream.host_compiles, ", device compiles ", upstream.device_compiles, ", links ",
                upstream.links);
}

std::string UpstreamText(const DaemonActivity& activity) {
  if (!activity.upstream) return "";
  const UpstreamStatus& upstream = *activity.upstream;
  std::vector<std::vector<std::string>> rows = {{"ADDRESS", "STATE", "USE", "STEPS"}};
  const std::string since = upstream.since_unix_ms > 0 ? StrCat(" since ", FormatTime(upstream.since_unix_ms)) : "";
  rows.push_back({upstream.address, upstream.health + since, UseOf(upstream), StepsOf(upstream)});
  const bool is_well = upstream.health == "answers" || upstream.last_error.empty();
  std::string remark = is_well ? "" : Printable(upstream.last_error) + "\n";
  if (!upstream.refuses_steps.empty()) {
    StrAppend(&remark, "no steps run there: ", Printable(upstream.refuses_steps), "\n");
  }
  return Section("UPSTREAM", rows, remark);
}

std::string Text(const Report& report) {
  return StrCat(Text(report.info), InheritedText(report.activity), LoadsText(report.activity),
                ToolchainsText(report.activity), UpstreamText(report.activity), CacheText(report.activity));
}

absl::StatusOr<Report> Ask(Client& client) {
  Report report;
  KERNIX_ASSIGN_OR_RETURN(report.info, client.Info(/*start=*/false));
  KERNIX_ASSIGN_OR_RETURN(report.activity, client.Activity());
  return report;
}

int Run(const GlobalOptions& options, bool json) {
  return WithClient(options, [json](Client& client) -> int {
    const absl::StatusOr<Report> report = Ask(client);
    if (!report.ok()) return Fail(report.status());
    std::cout << (json ? Json(*report) : Text(*report));
    return kOk;
  });
}

}  // namespace

Command StatusCommand(const GlobalOptions& options) {
  const auto json = std::make_shared<bool>(false);
  return {.name = "status",
          .summary = "Show which daemon answers, and what it does",
          .details = kDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, json] { return Run(options, *json); }};
}

}  // namespace kernix::ctl
