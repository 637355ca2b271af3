// SPDX-License-Identifier: Apache-2.0
#include "client/connection/caller.h"

#include <algorithm>
#include <thread>

namespace kernix {

bool Caller::GaveUp() {
  if (gave_up_ || IsChild()) return true;
  if (!cancelled_ || std::chrono::steady_clock::now() < ask_at_) return false;
  gave_up_ = cancelled_();
  ask_at_ = std::chrono::steady_clock::now() + kInterval;
  return gave_up_ || IsChild();
}

bool Caller::Pause(std::chrono::milliseconds time) {
  const MonotonicTime end = std::chrono::steady_clock::now() + time;
  while (!GaveUp()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return true;
    std::this_thread::sleep_for(std::min<MonotonicTime::duration>(left, kInterval));
  }
  return false;
}

}  // namespace kernix
