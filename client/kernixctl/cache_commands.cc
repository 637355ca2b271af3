// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl cache` and its commands about all entries: stats, list and purge.
#include "client/kernixctl/cache_commands.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/reports.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

// --- Stats

// Values by name and labels.
class Samples {
 public:
  explicit Samples(std::string_view metrics) {
    while (!metrics.empty()) {
      const std::string_view line = metrics.substr(0, metrics.find('\n'));
      metrics.remove_prefix(std::min(metrics.size(), line.size() + 1));
      const size_t space = line.rfind(' ');
      if (line.starts_with('#') || space == std::string_view::npos) continue;
      values_[std::string(line.substr(0, space))] = std::strtod(std::string(line.substr(space + 1)).c_str(), nullptr);
    }
  }

  bool Has(const std::string& sample) const { return values_.contains(sample); }
  double Value(const std::string& sample) const {
    const auto found = values_.find(sample);
    return found == values_.end() ? 0 : found->second;
  }
  uint64_t Count(const std::string& sample) const { return static_cast<uint64_t>(Value(sample)); }

  // Of all samples of a metric that have this label.
  double Sum(const std::string& metric, const std::string& label = "") const {
    double sum = 0;
    for (auto i = values_.lower_bound(metric); i != values_.end() && i->first.starts_with(metric + "{"); ++i) {
      if (label.empty() || i->first.find(label) != std::string::npos) sum += i->second;
    }
    return sum;
  }

 private:
  std::map<std::string, double> values_;
};

// The store, the upstream, or builds.
struct Tier {
  uint64_t loads = 0;  // that it has served
  double seconds = 0;  // that these took
};

Tier TierOf(const Samples& samples, const std::string& metric, const std::string& outcome) {
  const std::string labels = StrCat("{outcome=\"", outcome, "\"}");
  return {samples.Count(StrCat(metric, "_count", labels)), samples.Value(StrCat(metric, "_sum", labels))};
}

Tier StoreOf(const Samples& samples) {
  const Tier loads = TierOf(samples, "kernix_load_seconds", "hit");
  const Tier quick = TierOf(samples, "kernix_quick_lookup_seconds", "hit");
  return {loads.loads + quick.loads, loads.seconds + quick.seconds};
}

Tier UpstreamOf(const Samples& samples) { return TierOf(samples, "kernix_load_seconds", "upstream"); }

Tier BuildsOf(const Samples& samples) { return TierOf(samples, "kernix_load_seconds", "built"); }

// Of one, in microseconds.
uint64_t Mean(uint64_t count, double seconds) {
  return count == 0 ? 0 : static_cast<uint64_t>(1e6 * seconds / static_cast<double>(count));
}

std::string MeanText(uint64_t count, double seconds) {
  return count == 0 ? "-" : absl::StrFormat("%.1f ms", static_cast<double>(Mean(count, seconds)) / 1e3);
}

// The engine of an upstream. Counts what was asked for loads, for steps and for claims.
class Engine {
 public:
  explicit Engine(const Samples& samples) : samples_(samples) {}

  bool IsThere() const { return samples_.Has("kernix_upstream_retries_total"); }

  std::string Text() const {
    return FormatTable(
        {{"engine, keys", StrCat(Lookups("found"), " found, ", Lookups("absent"), " absent, ", Lookups("other_headers"),
                                 " for other headers")},
         {"  results",
          StrCat(Results("written"), " written, ", Results("lost"), " lost, ", Results("ignored"), " not believed")},
         {"  calls", StrCat(Made(), ", ", MeanText(Made(), Seconds()), " each, ", Calls("failed"), " failed, ",
                            Retries(), " tries more")},
         {"  not asked", StrCat(Calls("refused"), " times, broken ", Openings(), " times")},
         {"  bytes", StrCat(FormatBytes(Bytes("sent")), " sent, ", FormatBytes(Bytes("received")), " received")}});
  }

  std::string Json() const {
    return JsonObject()
        .Number("found", Lookups("found"))
        .Number("absent", Lookups("absent"))
        .Number("other_headers", Lookups("other_headers"))
        .Number("written", Results("written"))
        .Number("lost", Results("lost"))
        .Number("ignored", Results("ignored"))
        .Number("calls", Made())
        .Number("failed", Calls("failed"))
        .Number("refused", Calls("refused"))
        .Number("mean_us", Mean(Made(), Seconds()))
        .Number("retries", Retries())
        .Number("breaker_openings", Openings())
        .Number("bytes_sent", Bytes("sent"))
        .Number("bytes_received", Bytes("received"))
        .Str();
  }

 private:
  uint64_t Lookups(const char* result) const {
    return samples_.Count(StrCat("kernix_upstream_lookups_total{result=\"", result, "\"}"));
  }
  uint64_t Results(const char* what) const {
    return samples_.Count(StrCat("kernix_upstream_results_", what, "_total"));
  }
  uint64_t Calls(const char* outcome) const {
    return static_cast<uint64_t>(samples_.Sum("kernix_upstream_calls_total", StrCat("outcome=\"", outcome, "\"")));
  }
  uint64_t Bytes(const char* direction) const {
    return samples_.Count(StrCat("kernix_upstream_bytes_total{direction=\"", direction, "\"}"));
  }
  uint64_t Made() const { return static_cast<uint64_t>(samples_.Sum("kernix_upstream_seconds_count")); }
  double Seconds() const { return samples_.Sum("kernix_upstream_seconds_sum"); }
  uint64_t Retries() const { return samples_.Count("kernix_upstream_retries_total"); }
  uint64_t Openings() const { return samples_.Count("kernix_upstream_breaker_openings_total"); }

  const Samples& samples_;
};

std::string Json(const Tier& tier) {
  return JsonObject().Number("loads", tier.loads).Number("mean_us", Mean(tier.loads, tier.seconds)).Str();
}

constexpr char kStatsDetails[] =
    R"(The counts start at the creation of the store, but those of each tier (the store, the upstream, builds) with the
daemon. Starts the daemon if none is running.

Examples:
  kernixctl cache stats
  kernixctl cache stats --json
  kernixctl --store /scratch/kernix cache stats)";

std::string Json(const CacheStats& stats, std::string_view metrics) {
  JsonObject object;
  object.Number("builds", stats.builds)
      .Number("hits", stats.hits)
      .Number("misses", stats.misses)
      .Number("joined", stats.joined)
      .Number("failures", stats.failures)
      .Number("evictions", stats.evictions)
      .Number("cancelled", stats.cancelled)
      .Number("upstream_hits", stats.upstream_hits)
      .Number("entries", stats.entries)
      .Number("bytes", stats.bytes)
      .Number("limit_bytes", stats.limit_bytes)
      .Number("held_bytes", stats.held_bytes)
      .Number("limit_bytes_per_user", stats.limit_bytes_per_user)
      .Text("store_directory", stats.store_directory);
  for (const auto& [name, value] : TiersJson(metrics)) object.Json(name, value);
  return object.Str() + "\n";
}

std::string AtMost(uint64_t bytes, uint64_t limit) {
  return FormatBytes(bytes) + (limit == 0 ? "" : " of at most " + FormatBytes(limit));
}

std::string Text(const CacheStats& stats) {
  const auto row = [](const char* name, uint64_t value) {
    return std::vector<std::string>{name, std::to_string(value)};
  };
  return FormatTable({{"store", stats.store_directory},
                      row("entries", stats.entries),
                      {"size", AtMost(stats.bytes, stats.limit_bytes)},
                      {"  that you have loaded", AtMost(stats.held_bytes, stats.limit_bytes_per_user)},
                      row("hits", stats.hits),
                      row("misses", stats.misses),
                      row("  that joined a build", stats.joined),
                      row("  that another node had built", stats.upstream_hits),
                      row("builds", stats.builds),
                      row("failed builds", stats.failures),
                      row("cancelled builds", stats.cancelled),
                      row("evictions", stats.evictions)});
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
      .Text("user", DescribeUser(entry.owner))
      .Number("build_ms", entry.build_ms)
      .Boolean("pinned", entry.pinned)
      .Str();
}

std::string Text(const std::vector<CacheEntryInfo>& entries) {
  const int64_t now = Env::Posix().UnixMillis();
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "OWNER", "FOR", "SIZE", "HITS", "LAST USED", "PINNED", "KEY", "FUNCTIONS"}};
  for (const CacheEntryInfo& entry : entries) {
    const std::string runs_on = entry.architectures.empty() ? "cpu" : absl::StrJoin(entry.architectures, ",");
    const std::chrono::milliseconds age(std::max<int64_t>(0, now - entry.last_used_unix_ms));
    rows.push_back({entry.name, DescribeUser(entry.owner), runs_on, FormatBytes(entry.size), std::to_string(entry.hits),
                    FormatDuration(age) + " ago", entry.pinned ? "yes" : "no", entry.key.substr(0, 12),
                    absl::StrJoin(entry.functions, ", ")});
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

absl::StatusOr<PurgeFilter> FilterFor(const PurgeFlags& flags) {
  if (flags.name.empty() && flags.older_than.empty() && !flags.all) {
    return absl::InvalidArgumentError(
        "name the entries to remove: --name NAME, --older-than AGE (such as 30d), or --all for "
        "everything");
  }
  PurgeFilter filter{.name = flags.name, .pinned = flags.pinned};
  if (flags.older_than.empty()) return filter;
  const absl::StatusOr<std::chrono::milliseconds> age = ParseAge(flags.older_than);
  if (!age.ok()) return age.status();
  filter.not_used_for = *age;
  return filter;
}

std::string KeptText(uint64_t entries) {
  return StrCat("; ", entries, entries == 1 ? " pinned one stays" : " pinned ones stay",
                " (--pinned removes them, too)");
}

int RunPurge(const ClientOptions& options, const PurgeFlags& flags) {
  const absl::StatusOr<PurgeFilter> filter = FilterFor(flags);
  if (!filter.ok()) return RefuseUsage(ToStd(filter.status().message()));
  return PrintAnswer(options, [&filter](Client& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const PurgeResult removed, client.Purge(*filter));
    return StrCat("removed ", removed.entries, removed.entries == 1 ? " entry" : " entries", ", ",
                  FormatBytes(removed.bytes), removed.kept_entries == 0 ? "" : KeptText(removed.kept_entries), "\n");
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

std::string TiersText(std::string_view metrics) {
  const Samples samples(metrics);
  const Engine engine(samples);
  const auto row = [](const char* name, const Tier& tier) {
    return std::vector<std::string>{name, std::to_string(tier.loads), MeanText(tier.loads, tier.seconds)};
  };
  std::vector<std::vector<std::string>> rows = {{"SERVED BY", "LOADS", "MEAN TIME"}, row("store", StoreOf(samples))};
  if (engine.IsThere()) rows.push_back(row("upstream", UpstreamOf(samples)));
  rows.push_back(row("builds", BuildsOf(samples)));
  return StrCat("\nSINCE THE DAEMON BEGAN\n", FormatTable(std::move(rows)), engine.IsThere() ? engine.Text() : "");
}

std::map<std::string, std::string> TiersJson(std::string_view metrics) {
  const Samples samples(metrics);
  const Engine engine(samples);
  JsonObject served;
  served.Json("store", Json(StoreOf(samples)))
      .Json("upstream", Json(UpstreamOf(samples)))
      .Json("builds", Json(BuildsOf(samples)));
  std::map<std::string, std::string> fields = {{"tiers", served.Str()}};
  if (engine.IsThere()) fields["engine"] = engine.Json();
  return fields;
}

absl::StatusOr<std::string> Metrics(DaemonClient& client) {
  KERNIX_ASSIGN_OR_RETURN(auto response, client.Ask<v1::GetMetricsResponse>("GetMetrics", v1::GetMetricsRequest()));
  return std::move(*response.mutable_text());
}

absl::StatusOr<std::string> CacheStatsJson(DaemonClient& client, bool start) {
  KERNIX_ASSIGN_OR_RETURN(const CacheStats stats, client.Stats(start));
  KERNIX_ASSIGN_OR_RETURN(const std::string metrics, Metrics(client));
  return Json(stats, metrics);
}

std::string EntriesJson(const std::vector<CacheEntryInfo>& entries) {
  return JsonOfAll(entries, [](const CacheEntryInfo& entry) { return Json(entry); }) + "\n";
}

Command CacheStatsCommand(const ClientOptions& options) {
  const auto json = std::make_shared<bool>(false);
  const auto answer = [json](DaemonClient& client) -> absl::StatusOr<std::string> {
    if (*json) return CacheStatsJson(client);
    KERNIX_ASSIGN_OR_RETURN(const CacheStats stats, client.Stats());
    KERNIX_ASSIGN_OR_RETURN(const std::string metrics, Metrics(client));
    return Text(stats) + TiersText(metrics);
  };
  return {.name = "stats",
          .summary = "Show hits, builds and size",
          .details = kStatsDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, answer] { return PrintAnswer(options, answer); }};
}

Command CacheListCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<ListFlags>();
  const auto answer = [flags](Client& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const std::vector<CacheEntryInfo> entries, client.List(flags->name));
    return flags->json ? EntriesJson(entries) : Text(entries);
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
