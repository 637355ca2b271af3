// SPDX-License-Identifier: Apache-2.0
//
// The application's side of a call that may take long: whether it still waits.
#pragma once

#include <unistd.h>

#include <chrono>
#include <functional>
#include <utility>

#include "common/os/env.h"

namespace kernix {

// Of one call, in one thread. `cancelled` runs in that thread, and may throw and fork: a child gives up what its parent
// has begun.
class Caller {
 public:
  // How often the application is asked.
  static constexpr std::chrono::milliseconds kInterval{50};

  Caller() = default;  // waits until the call has ended
  explicit Caller(std::function<bool()> cancelled) : cancelled_(std::move(cancelled)) {}

  // Whether the call must end. Once true, always true. Call it at least every kInterval.
  bool GaveUp();

  // Whether this process is a child of the one that made the call, because a callback has forked.
  bool IsChild() const { return getpid() != process_; }

  // Waits. Returns false at once when the caller gives up.
  bool Pause(std::chrono::milliseconds time);

 private:
  std::function<bool()> cancelled_;
  pid_t process_ = getpid();
  MonotonicTime ask_at_ = std::chrono::steady_clock::now() + kInterval;
  bool gave_up_ = false;
};

}  // namespace kernix
