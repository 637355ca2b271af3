// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/upstream_metrics.h"

namespace kernix::remote {

void UpstreamMetrics::Register(MetricsRegistry& registry) const {
  for (size_t call = 0; call < kUpstreamCalls; ++call) {
    for (size_t outcome = 0; outcome < kUpstreamOutcomes; ++outcome) {
      registry.AddCounter("kernix_upstream_calls_total", "What the upstream engine was asked for, and how that ended.",
                          counts_[call][outcome],
                          {{"call", kUpstreamCallNames[call]}, {"outcome", kUpstreamOutcomeNames[outcome]}});
    }
    registry.AddHistogram("kernix_upstream_seconds", "How long the upstream engine took, with all retries.",
                          seconds_[call], {{"call", kUpstreamCallNames[call]}});
  }
}

}  // namespace kernix::remote
