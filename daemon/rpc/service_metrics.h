// SPDX-License-Identifier: Apache-2.0
//
// What the services count and log: the ends of loads, and refusals.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "common/base/metrics.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Why a request or connection was refused.
enum class Refusal {
  kStranger,       // may not use this daemon
  kConnections,    // the user, or all users together, have too many connections
  kDraining,       // the daemon is stopping
  kLoads,          // has too many loads under way
  kLookups,        // has too many quick lookups under way
  kRequestBytes,   // sends too much
  kUploadBytes,    // uploads too much
  kFetches,        // has too many fetches under way
  kLists,          // does not read its lists of the cache
  kAdministrator,  // asks for what only administrators may do
};
inline constexpr size_t kRefusalCount = 10;

// Thread-safe.
class ServiceMetrics {
 public:
  using Time = std::chrono::steady_clock::duration;

  // The registry must not be read after this object is destroyed.
  void Register(MetricsRegistry& registry) const;

  // Notes a load that came as a full request.
  void NoteLoad(const absl::StatusOr<v1::LoadResult>& result, Time took);
  // Notes what has become of a load of a program that expects no build any more.
  void NoteFrozenLoad(const absl::StatusOr<v1::LoadResult>& result);
  void NoteQuickLookup(bool hit, Time took) { (hit ? quick_hits_ : quick_misses_).Observe(Seconds(took)); }
  // A check of the files that the answers of some lookups follow from.
  void NoteFileCheck(const FileCheck& check);
  void NoteRefusal(Refusal reason) { refusals_[static_cast<size_t>(reason)].Add(); }

 private:
  static double Seconds(Time took) { return std::chrono::duration<double>(took).count(); }

  MetricHistogram& TimesOf(const absl::StatusOr<v1::LoadResult>& result);

  MetricHistogram hits_;
  MetricHistogram upstream_hits_;
  MetricHistogram builds_;
  MetricHistogram failures_;
  MetricHistogram not_cached_;
  MetricCounter frozen_builds_;
  MetricCounter frozen_failures_;
  MetricCounter frozen_refusals_;
  MetricHistogram quick_hits_;
  MetricHistogram quick_misses_;
  MetricCounter files_checked_;
  MetricCounter files_watched_;
  std::array<MetricCounter, kRefusalCount> refusals_;
};

// The log line at the end of each load, whether asked for by gRPC or by lookup.

// `name` is the module's.
void LogLoad(const Identity& user, const std::string& name, const absl::StatusOr<v1::LoadResult>& result,
             Duration took);

// For a hit. `key` is raw.
void LogHit(const Identity& user, const std::string& name, const std::string& key, Duration took);

}  // namespace kernix::server
