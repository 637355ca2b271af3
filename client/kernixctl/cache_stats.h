// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl cache stats`: what the cache holds, and what each tier of it has done since the daemon began, out of the
// daemon's metrics: its store, the upstream, and builds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace kernix::ctl {

// What each tier of a daemon's cache has done since the daemon began, out of its metrics: its store, the upstream, and
// builds.
struct Tier {
  uint64_t loads = 0;  // that it has served
  double seconds = 0;  // that these took
};

// The engine of an upstream. Counts what was asked for loads, for steps and for claims.
struct UpstreamUse {
  uint64_t found = 0, absent = 0, other_headers = 0;  // keys
  uint64_t written = 0, lost = 0, ignored = 0;        // results
  uint64_t calls = 0, failed = 0, refused = 0;        // calls that were made; of these; not made, since it is broken
  double seconds = 0;                                 // of `calls`
  uint64_t retries = 0, breaker_openings = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
};

struct Tiers {
  Tier store, upstream, builds;
  std::optional<UpstreamUse> engine;  // nothing: there is none
};

// `metrics`: in Prometheus' text format. A sample that is not there counts as 0.
Tiers TiersOf(std::string_view metrics);

// Tables for people, with a title.
std::string TiersText(const Tiers& tiers);
// Two fields of a JSON object, "tiers" and "engine".
std::map<std::string, std::string> TiersJson(const Tiers& tiers);

}  // namespace kernix::ctl
