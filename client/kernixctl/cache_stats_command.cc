// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>
#include <optional>

#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/tiers.h"
#include "common/base/json.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
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

int Run(const GlobalOptions& options, bool json) {
  return WithClient(options, [json](Client& client) -> int {
    const absl::StatusOr<CacheStats> stats = client.Stats();
    if (!stats.ok()) return Fail(stats.status());
    const absl::StatusOr<std::string> metrics = client.Metrics();  // which not everybody may see
    const std::optional<Tiers> tiers = metrics.ok() ? std::optional(TiersOf(*metrics)) : std::nullopt;
    std::cout << (json ? Json(*stats, tiers) + "\n" : Text(*stats) + (tiers ? TiersText(*tiers) : ""));
    return kOk;
  });
}

}  // namespace

Command CacheStatsCommand(const GlobalOptions& options) {
  const auto json = std::make_shared<bool>(false);
  return {.name = "stats",
          .summary = "Show hits, builds and size",
          .details = kDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, json] { return Run(options, *json); }};
}

}  // namespace kernix::ctl
