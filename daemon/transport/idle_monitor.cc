// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/idle_monitor.h"

#include <algorithm>

namespace kernix::server {
namespace {

constexpr Duration kLongestPause{10'000};
constexpr Duration kShortestPause{10};

}  // namespace

bool IdleMonitor::Step(const Activity& activity, MonotonicTime now) {
  const bool active = activity.running > 0 || activity.started != started_;
  // The first quiet step also counts as active: what the step before saw may have ended only a moment ago.
  if (active || was_active_) active_at_ = now;
  was_active_ = active;
  started_ = activity.started;
  return timeout_.count() > 0 && now - active_at_ >= timeout_;
}

Duration IdleMonitor::Pause(MonotonicTime now) const {
  if (timeout_.count() == 0) return kLongestPause;
  // Rounded up, so that the step that waits for the end does not come slightly too early.
  const auto left = std::chrono::ceil<Duration>(active_at_ + timeout_ - now);
  const Duration round = was_active_ ? timeout_ / 10 : left;
  return std::clamp(round, kShortestPause, kLongestPause);
}

}  // namespace kernix::server
