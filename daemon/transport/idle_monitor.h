// SPDX-License-Identifier: Apache-2.0
//
// Decides when a daemon has been idle for long enough.
#pragma once

#include <cstdint>

#include "common/os/env.h"

namespace kernix::server {

// The daemon's activity at one moment.
struct Activity {
  int running = 0;       // present clients and loads
  uint64_t started = 0;  // clients since the start; reveals those that came and went between two steps
};

// A background loop; each Step() is one round. Not thread-safe.
class IdleMonitor {
 public:
  // `timeout` 0: never idle for long enough.
  IdleMonitor(Duration timeout, MonotonicTime now) : timeout_(timeout), active_at_(now) {}

  // True if nothing has been active for the whole timeout.
  bool Step(const Activity& activity, MonotonicTime now);

  void SetTimeout(Duration timeout) { timeout_ = timeout; }

  // How long to wait until the next step. The step may come earlier.
  Duration Pause(MonotonicTime now) const;

 private:
  Duration timeout_;
  MonotonicTime active_at_;  // last time of activity, or of a step before which activity may just have ended
  uint64_t started_ = 0;
  bool was_active_ = true;
};

}  // namespace kernix::server
