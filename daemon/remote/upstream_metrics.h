// SPDX-License-Identifier: Apache-2.0
//
// Counts the calls of Upstream. Internal to the room.
#pragma once

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "common/base/metrics.h"

namespace kernix::remote {

enum class UpstreamCall { kFacts, kFindResult, kPutResult, kRead, kWrite, kExecute };

inline constexpr size_t kUpstreamCalls = 6;
inline constexpr std::array<const char*, kUpstreamCalls> kUpstreamCallNames = {"facts", "find_result", "put_result",
                                                                               "read",  "write",       "execute"};

// How a call ended.
enum class UpstreamOutcome {
  kDone,
  kAbsent,     // the engine does not have it
  kFailed,     // after all retries
  kRefused,    // by the circuit breaker: the engine was not asked
  kCancelled,  // by the caller
};

inline constexpr size_t kUpstreamOutcomes = 5;
inline constexpr std::array<const char*, kUpstreamOutcomes> kUpstreamOutcomeNames = {"done", "absent", "failed",
                                                                                     "refused", "cancelled"};

// Thread-safe.
class UpstreamMetrics {
 public:
  void Count(UpstreamCall call, UpstreamOutcome outcome) {
    counts_[static_cast<size_t>(call)][static_cast<size_t>(outcome)].Add();
  }
  void Observe(UpstreamCall call, double seconds) { seconds_[static_cast<size_t>(call)].Observe(seconds); }

  void Register(MetricsRegistry& registry) const;

 private:
  std::array<std::array<MetricCounter, kUpstreamOutcomes>, kUpstreamCalls> counts_;
  std::array<MetricHistogram, kUpstreamCalls> seconds_;
};

}  // namespace kernix::remote
