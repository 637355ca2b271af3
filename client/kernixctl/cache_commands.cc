// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl cache` and its commands about all entries: stats, list and purge.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/reports.h"
#include "common/base/json.h"
#include "common/base/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

// --- Stats

constexpr char kStatsDetails[] =
    R"(The counts start at the creation of the store; `kernixctl metrics` has times, those of the upstream, and more. Starts
the daemon if none is running.

Examples:
  kernixctl cache stats
  kernixctl cache stats --json
  kernixctl --store /scratch/kernix cache stats)";

std::string Json(const v1::GetCacheStatsResponse& stats) { return FieldsOf(stats).Str() + "\n"; }

std::string AtMost(uint64_t bytes, uint64_t limit) {
  return FormatBytes(bytes) + (limit == 0 ? "" : " of at most " + FormatBytes(limit));
}

std::string Text(const v1::GetCacheStatsResponse& stats) {
  const auto row = [](const char* name, uint64_t value) {
    return std::vector<std::string>{name, std::to_string(value)};
  };
  return FormatTable({{"store", stats.store_directory()},
                      row("entries", stats.entries()),
                      {"size", AtMost(stats.bytes(), stats.limit_bytes())},
                      {"your entries, each in full", AtMost(stats.held_bytes(), stats.limit_bytes_per_user())},
                      row("hits", stats.hits()),
                      row("misses", stats.misses()),
                      row("  that joined a build", stats.joined()),
                      row("  that another node had built", stats.upstream_hits()),
                      row("builds", stats.builds()),
                      row("failed builds", stats.failures()),
                      row("cancelled builds", stats.cancelled()),
                      row("evictions", stats.evictions())});
}

// --- List

constexpr char kListDetails[] =
    R"(Lists an entry once for each of its tags (the user and the name of a load), the last used first.
Users see their own tags; administrators see all.

Examples:
  kernixctl cache list
  kernixctl cache list --name vector_add --json)";

struct ListFlags {
  std::string name;
  bool json = false;
};

std::string Json(const v1::CacheEntry& entry) {
  return FieldsOf(entry)
      .Text("key", KeyOf(entry))
      .Text("user", DescribeUser(entry.owner()))
      .Text("language", TraitsOf(entry.language()).id)
      .Json("architectures", JsonOfTexts(entry.architecture()))
      .Json("functions", JsonOfTexts(entry.function()))
      .Str();
}

std::string Text(const CacheEntries& entries) {
  const int64_t now = Env::Posix().UnixMillis();
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "OWNER", "FOR", "SIZE", "HITS", "LAST USED", "PINNED", "KEY", "FUNCTIONS"}};
  for (const v1::CacheEntry& entry : entries) {
    const std::string runs_on = entry.architecture().empty() ? "cpu" : absl::StrJoin(entry.architecture(), ",");
    const std::chrono::milliseconds age(std::max<int64_t>(0, now - entry.last_used_unix_ms()));
    rows.push_back({entry.name(), DescribeUser(entry.owner()), runs_on, FormatBytes(entry.size()),
                    std::to_string(entry.hits()), FormatDuration(age) + " ago", entry.pinned() ? "yes" : "no",
                    KeyOf(entry).substr(0, 12), absl::StrJoin(entry.function(), ", ")});
  }
  return FormatTable(rows);
}

// --- Purge

constexpr char kPurgeDetails[] =
    R"(Without --name, --older-than or --all, removes nothing (exit code 2). With both --name and --older-than,
removes entries that match both. Pinned entries stay, unless you give --pinned. Programs that have loaded a kernel
keep it. In a shared daemon, removes only your own entries, unless you are an administrator.

Examples:
  kernixctl cache purge --name vector_add
  kernixctl cache purge --older-than 30d
  kernixctl cache purge --all --pinned)";

struct PurgeFlags {
  std::string name;
  std::string older_than;
  bool all = false;
  bool pinned = false;
};

absl::StatusOr<v1::PurgeCacheRequest> RequestFor(const PurgeFlags& flags) {
  if (flags.name.empty() && flags.older_than.empty() && !flags.all) {
    return absl::InvalidArgumentError(
        "name the entries to remove: --name NAME, --older-than AGE (such as 30d), or --all for "
        "everything");
  }
  v1::PurgeCacheRequest request;
  if (flags.all) request.set_all(true);
  if (!flags.name.empty()) {
    KERNIX_RETURN_IF_ERROR(CheckModuleName(flags.name));
    request.set_name(flags.name);
  }
  if (!flags.older_than.empty()) {
    const absl::StatusOr<std::chrono::milliseconds> age = ParseAge(flags.older_than);
    if (!age.ok()) return age.status();
    request.set_older_than_ms(age->count());
  }
  request.set_pinned(flags.pinned);
  return request;
}

std::string KeptText(uint64_t entries) {
  return StrCat("; ", entries, entries == 1 ? " pinned one stays" : " pinned ones stay",
                " (--pinned removes them, too)");
}

int RunPurge(const ClientOptions& options, const PurgeFlags& flags) {
  const absl::StatusOr<v1::PurgeCacheRequest> request = RequestFor(flags);
  if (!request.ok()) return RefuseUsage(ToStd(request.status().message()));
  return PrintAnswer(options, [&request](DaemonClient& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const auto removed,
                            client.Ask<v1::PurgeCacheResponse>("PurgeCache", *request, /*start=*/true));
    return StrCat("removed ", removed.removed_entries(), removed.removed_entries() == 1 ? " entry" : " entries", ", ",
                  FormatBytes(removed.removed_bytes()),
                  removed.kept_entries() == 0 ? "" : KeptText(removed.kept_entries()), "\n");
  });
}

// --- The cache

constexpr char kDetails[] = R"(Examples:
  kernixctl cache stats
  kernixctl cache list --name vector_add
  kernixctl cache show 5d0c2f
  kernixctl cache purge --older-than 30d
  kernixctl cache pin vector_add
  kernixctl cache verify --repair)";

}  // namespace

std::string KeyOf(const v1::CacheEntry& entry) { return absl::BytesToHexString(entry.key()); }

absl::StatusOr<std::string> CacheStatsJson(DaemonClient& client, bool start) {
  KERNIX_ASSIGN_OR_RETURN(const auto stats, client.Stats(start));
  return Json(stats);
}

std::string EntriesJson(const CacheEntries& entries) {
  return JsonOfAll(entries, [](const v1::CacheEntry& entry) { return Json(entry); }) + "\n";
}

Command CacheStatsCommand(const ClientOptions& options) {
  const auto json = std::make_shared<bool>(false);
  const auto answer = [json](DaemonClient& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const auto stats, client.Stats());
    return *json ? Json(stats) : Text(stats);
  };
  return {.name = "stats",
          .summary = "Show hits, builds and size",
          .details = kStatsDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, answer] { return PrintAnswer(options, answer); }};
}

Command CacheListCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<ListFlags>();
  const auto answer = [flags](DaemonClient& client) -> absl::StatusOr<std::string> {
    v1::ListCacheRequest request;
    if (!flags->name.empty()) KERNIX_RETURN_IF_ERROR(CheckModuleName(flags->name));
    request.set_name(flags->name);
    KERNIX_ASSIGN_OR_RETURN(const auto found, client.Ask<v1::ListCacheResponse>("ListCache", request, /*start=*/true));
    return flags->json ? EntriesJson(found.entry()) : Text(found.entry());
  };
  return {.name = "list",
          .summary = "List the entries of the cache",
          .details = kListDetails,
          .options = {{"--name", &flags->name, "Show only modules with this name"},
                      {"--json", &flags->json, "Print a JSON array of objects"}},
          .run = [&options, answer] { return PrintAnswer(options, answer); }};
}

Command CachePurgeCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<PurgeFlags>();
  return {.name = "purge",
          .summary = "Remove entries",
          .details = kPurgeDetails,
          .options = {{"--all", &flags->all, "Everything"},
                      {"--name", &flags->name, "Remove modules with this name", {.excludes = "--all"}},
                      {"--older-than",
                       &flags->older_than,
                       "Remove entries not used for this long: 90s, 10m, 2h, 7d",
                       {.excludes = "--all"}},
                      {"--pinned", &flags->pinned, "Remove pinned entries, too"}},
          .run = [&options, flags] { return RunPurge(options, *flags); }};
}

Command CacheCommand(const ClientOptions& options) {
  return {.name = "cache",
          .summary = "The cache of compiled kernels",
          .details = kDetails,
          .subcommands = {CacheStatsCommand(options), CacheListCommand(options), CacheShowCommand(options),
                          CachePurgeCommand(options), CachePinCommand(options), CacheUnpinCommand(options),
                          CacheVerifyCommand(options)}};
}

}  // namespace kernix::ctl
