// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/cache_stats.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

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

Tier TierOf(const Samples& samples, const std::string& metric, const std::string& outcome) {
  const std::string labels = StrCat("{outcome=\"", outcome, "\"}");
  return {samples.Count(StrCat(metric, "_count", labels)), samples.Value(StrCat(metric, "_sum", labels))};
}

UpstreamUse UseOf(const Samples& samples) {
  const auto lookups = [&](const std::string& result) {
    return samples.Count(StrCat("kernix_upstream_lookups_total{result=\"", result, "\"}"));
  };
  const auto calls = [&](const std::string& outcome) {
    return static_cast<uint64_t>(samples.Sum("kernix_upstream_calls_total", StrCat("outcome=\"", outcome, "\"")));
  };
  const auto bytes = [&](const std::string& direction) {
    return samples.Count(StrCat("kernix_upstream_bytes_total{direction=\"", direction, "\"}"));
  };
  return {.found = lookups("found"),
          .absent = lookups("absent"),
          .other_headers = lookups("other_headers"),
          .written = samples.Count("kernix_upstream_results_written_total"),
          .lost = samples.Count("kernix_upstream_results_lost_total"),
          .ignored = samples.Count("kernix_upstream_results_ignored_total"),
          .calls = static_cast<uint64_t>(samples.Sum("kernix_upstream_seconds_count")),
          .failed = calls("failed"),
          .refused = calls("refused"),
          .seconds = samples.Sum("kernix_upstream_seconds_sum"),
          .retries = samples.Count("kernix_upstream_retries_total"),
          .breaker_openings = samples.Count("kernix_upstream_breaker_openings_total"),
          .bytes_sent = bytes("sent"),
          .bytes_received = bytes("received")};
}

// Of one, in microseconds.
uint64_t Mean(uint64_t count, double seconds) {
  return count == 0 ? 0 : static_cast<uint64_t>(1e6 * seconds / static_cast<double>(count));
}

std::string MeanText(uint64_t count, double seconds) {
  return count == 0 ? "-" : absl::StrFormat("%.1f ms", static_cast<double>(Mean(count, seconds)) / 1e3);
}

std::string EngineText(const UpstreamUse& use) {
  return FormatTable(
      {{"engine, keys",
        StrCat(use.found, " found, ", use.absent, " absent, ", use.other_headers, " for other headers")},
       {"  results", StrCat(use.written, " written, ", use.lost, " lost, ", use.ignored, " not believed")},
       {"  calls", StrCat(use.calls, ", ", MeanText(use.calls, use.seconds), " each, ", use.failed, " failed, ",
                          use.retries, " tries more")},
       {"  not asked", StrCat(use.refused, " times, broken ", use.breaker_openings, " times")},
       {"  bytes", StrCat(FormatBytes(use.bytes_sent), " sent, ", FormatBytes(use.bytes_received), " received")}});
}

std::string Json(const Tier& tier) {
  return JsonObject().Number("loads", tier.loads).Number("mean_us", Mean(tier.loads, tier.seconds)).Str();
}

std::string Json(const UpstreamUse& use) {
  return JsonObject()
      .Number("found", use.found)
      .Number("absent", use.absent)
      .Number("other_headers", use.other_headers)
      .Number("written", use.written)
      .Number("lost", use.lost)
      .Number("ignored", use.ignored)
      .Number("calls", use.calls)
      .Number("failed", use.failed)
      .Number("refused", use.refused)
      .Number("mean_us", Mean(use.calls, use.seconds))
      .Number("retries", use.retries)
      .Number("breaker_openings", use.breaker_openings)
      .Number("bytes_sent", use.bytes_sent)
      .Number("bytes_received", use.bytes_received)
      .Str();
}

}  // namespace

Tiers TiersOf(std::string_view metrics) {
  const Samples samples(metrics);
  Tiers tiers{.store = TierOf(samples, "kernix_load_seconds", "hit"),
              .upstream = TierOf(samples, "kernix_load_seconds", "upstream"),
              .builds = TierOf(samples, "kernix_load_seconds", "built"),
              .engine = std::nullopt};
  const Tier quick = TierOf(samples, "kernix_quick_lookup_seconds", "hit");
  tiers.store.loads += quick.loads;
  tiers.store.seconds += quick.seconds;
  if (samples.Has("kernix_upstream_retries_total")) tiers.engine = UseOf(samples);
  return tiers;
}

std::string TiersText(const Tiers& tiers) {
  const auto row = [](const char* name, const Tier& tier) {
    return std::vector<std::string>{name, std::to_string(tier.loads), MeanText(tier.loads, tier.seconds)};
  };
  std::vector<std::vector<std::string>> rows = {{"SERVED BY", "LOADS", "MEAN TIME"}, row("store", tiers.store)};
  if (tiers.engine) rows.push_back(row("upstream", tiers.upstream));
  rows.push_back(row("builds", tiers.builds));
  return StrCat("\nSINCE THE DAEMON BEGAN\n", FormatTable(std::move(rows)),
                tiers.engine ? EngineText(*tiers.engine) : "");
}

std::map<std::string, std::string> TiersJson(const Tiers& tiers) {
  JsonObject served;
  served.Json("store", Json(tiers.store)).Json("upstream", Json(tiers.upstream)).Json("builds", Json(tiers.builds));
  std::map<std::string, std::string> fields = {{"tiers", served.Str()}};
  if (tiers.engine) fields["engine"] = Json(*tiers.engine);
  return fields;
}

namespace {

constexpr char kStatsDetails[] =
    R"(The counts start at the creation of the store. Those of each tier (the store, the upstream, builds) start with the
daemon; a shared one shows them to its administrators. Starts the daemon if none is running.

Examples:
  kernixctl cache stats
  kernixctl cache stats --json
  kernixctl --store /scratch/kernix cache stats)";

std::string Json(const CacheStats& stats, const std::optional<Tiers>& tiers) {
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
      .Text("store_directory", stats.store_directory);
  if (tiers) {
    for (const auto& [name, value] : TiersJson(*tiers)) object.Json(name, value);
  }
  return object.Str();
}

std::string Text(const CacheStats& stats) {
  const auto row = [](const char* name, uint64_t value) {
    return std::vector<std::string>{name, std::to_string(value)};
  };
  return FormatTable({{"store", stats.store_directory},
                      row("entries", stats.entries),
                      {"size", FormatBytes(stats.bytes) + " of at most " + FormatBytes(stats.limit_bytes)},
                      row("hits", stats.hits),
                      row("misses", stats.misses),
                      row("  that joined a build", stats.joined),
                      row("  that another node had built", stats.upstream_hits),
                      row("builds", stats.builds),
                      row("failed builds", stats.failures),
                      row("cancelled builds", stats.cancelled),
                      row("evictions", stats.evictions)});
}

int Run(const ClientOptions& options, bool json) {
  return PrintAnswer(options, [json](DaemonClient& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const CacheStats stats, client.Stats());
    // Not everybody may see these.
    const auto metrics = client.Ask<v1::GetMetricsResponse>("GetMetrics", v1::GetMetricsRequest());
    const std::optional<Tiers> tiers = metrics.ok() ? std::optional(TiersOf(metrics->text())) : std::nullopt;
    return json ? Json(stats, tiers) + "\n" : Text(stats) + (tiers ? TiersText(*tiers) : "");
  });
}

}  // namespace

Command CacheStatsCommand(const ClientOptions& options) {
  const auto json = std::make_shared<bool>(false);
  return {.name = "stats",
          .summary = "Show hits, builds and size",
          .details = kStatsDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, json] { return Run(options, *json); }};
}

}  // namespace kernix::ctl
