// SPDX-License-Identifier: Apache-2.0
//
// Decides when a daemon has been idle for long enough.
#pragma once

#include <cstdint>

#include "common/os/env.h"

namespace kernix::server {

// What goes on at one moment.
struct Activity {
  int running = 0;       // clients and jobs now
  uint64_t started = 0;  // clients that have come since the start: what came and went between two looks
};

// A background loop of which each Step() is one round. Not thread-safe.
class IdleMonitor {
 public:
  // `timeout` 0: never idle for long enough.
  IdleMonitor(Duration timeout, MonotonicTime now) : timeout_(timeout), active_at_(now) {}

  // True when nothing has gone on for the whole timeout.
  bool Step(const Activity& activity, MonotonicTime now);

  // How long the next step can wait. It may come earlier.
  Duration Pause(MonotonicTime now) const;

 private:
  const Duration timeout_;
  MonotonicTime active_at_;  // there was something, or it can have ended since the step before
  uint64_t started_ = 0;
  bool was_active_ = true;
};

}  // namespace kernix::server
