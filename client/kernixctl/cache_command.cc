// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl cache` and its commands about all entries: list and purge.
#include <algorithm>
#include <memory>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kListDetails[] =
    R"(Lists an entry once for each user and name that it was loaded under (its tags), the last used first.
Users see their own tags; administrators see all.

Examples:
  kernixctl cache list
  kernixctl cache list --name vector_add --json)";

struct ListFlags {
  std::string name;
  bool json = false;
};

std::string Json(const CacheEntryInfo& entry) {
  return JsonObject()
      .Text("key", entry.key)
      .Text("name", entry.name)
      .Text("language", entry.language)
      .Json("architectures", JsonStrings(entry.architectures))
      .Json("functions", JsonStrings(entry.functions))
      .Number("size", entry.size)
      .Number("created_unix_ms", entry.created_unix_ms)
      .Number("last_used_unix_ms", entry.last_used_unix_ms)
      .Number("hits", entry.hits)
      .Number("owner", uint64_t{entry.owner})
      .Str();
}

std::string Json(const std::vector<CacheEntryInfo>& entries) {
  std::vector<std::string> elements;
  for (const CacheEntryInfo& entry : entries) elements.push_back(Json(entry));
  return JsonArray(elements) + "\n";
}

std::string Text(const std::vector<CacheEntryInfo>& entries) {
  const int64_t now = Env::Posix().UnixMillis();
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "OWNER", "FOR", "SIZE", "HITS", "LAST USED", "KEY", "FUNCTIONS"}};
  for (const CacheEntryInfo& entry : entries) {
    const std::string runs_on = entry.architectures.empty() ? "cpu" : absl::StrJoin(entry.architectures, ",");
    const std::chrono::milliseconds age(std::max<int64_t>(0, now - entry.last_used_unix_ms));
    rows.push_back({entry.name, DescribeUser(entry.owner), runs_on, FormatBytes(entry.size), std::to_string(entry.hits),
                    FormatDuration(age) + " ago", entry.key.substr(0, 12), absl::StrJoin(entry.functions, ", ")});
  }
  return FormatTable(rows);
}

int RunList(const ClientOptions& options, const ListFlags& flags) {
  return PrintAnswer(options, [&flags](Client& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const std::vector<CacheEntryInfo> entries, client.List(flags.name));
    return flags.json ? Json(entries) : Text(entries);
  });
}

}  // namespace

Command CacheListCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<ListFlags>();
  return {.name = "list",
          .summary = "List the entries of the cache",
          .details = kListDetails,
          .options = {{"--name", &flags->name, "Show only modules with this name"},
                      {"--json", &flags->json, "Print a JSON array of objects"}},
          .run = [&options, flags] { return RunList(options, *flags); }};
}

namespace {

constexpr char kPurgeDetails[] =
    R"(Without --name, --older-than or --all, removes nothing (exit code 2). With both --name and --older-than,
removes entries that match both. Programs that have loaded a kernel keep it. In a shared daemon, removes only
your own entries, unless you are an administrator.

Examples:
  kernixctl cache purge --name vector_add
  kernixctl cache purge --older-than 30d
  kernixctl cache purge --all)";

struct PurgeFlags {
  std::string name;
  std::string older_than;
  bool all = false;
};

absl::StatusOr<PurgeFilter> FilterFor(const PurgeFlags& flags) {
  if (flags.name.empty() && flags.older_than.empty() && !flags.all) {
    return absl::InvalidArgumentError(
        "cache purge needs to know what to remove: --name NAME, --older-than AGE (such as 30d), or --all for "
        "everything");
  }
  PurgeFilter filter{.name = flags.name};
  if (flags.older_than.empty()) return filter;
  const absl::StatusOr<std::chrono::milliseconds> age = ParseAge(flags.older_than);
  if (!age.ok()) return age.status();
  filter.not_used_for = *age;
  return filter;
}

int RunPurge(const ClientOptions& options, const PurgeFlags& flags) {
  const absl::StatusOr<PurgeFilter> filter = FilterFor(flags);
  if (!filter.ok()) return RefuseUsage(ToStd(filter.status().message()));
  return PrintAnswer(options, [&filter](Client& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const PurgeResult removed, client.Purge(*filter));
    return StrCat("removed ", removed.entries, removed.entries == 1 ? " entry" : " entries", ", ",
                  FormatBytes(removed.bytes), "\n");
  });
}

}  // namespace

Command CachePurgeCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<PurgeFlags>();
  return {.name = "purge",
          .summary = "Remove entries",
          .details = kPurgeDetails,
          .options = {{"--all", &flags->all, "Everything"},
                      {"--name", &flags->name, "Remove modules with this name", {.excludes = "--all"}},
                      {"--older-than",
                       &flags->older_than,
                       "Remove entries that have not been used for this long: 90s, 10m, 2h, 7d",
                       {.excludes = "--all"}}},
          .run = [&options, flags] { return RunPurge(options, *flags); }};
}

namespace {

constexpr char kDetails[] = R"(Examples:
  kernixctl cache stats
  kernixctl cache list --name vector_add
  kernixctl cache show 5d0c2f
  kernixctl cache purge --older-than 30d)";

}  // namespace

Command CacheCommand(const ClientOptions& options) {
  return {.name = "cache",
          .summary = "The cache of compiled kernels",
          .details = kDetails,
          .subcommands = {CacheStatsCommand(options), CacheListCommand(options), CacheShowCommand(options),
                          CachePurgeCommand(options)}};
}

}  // namespace kernix::ctl
