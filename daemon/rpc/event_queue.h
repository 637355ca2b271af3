// SPDX-License-Identifier: Apache-2.0
//
// Events of a load that wait to be sent. A slow client must not hold up a build that others wait for, so nobody waits
// for room here: what is out of date is replaced, and compiler output beyond a bound is dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Not thread-safe.
class EventQueue {
 public:
  static constexpr uint64_t kMaxOutputBytes = 16 << 20;

  // Progress replaces progress that is still last in the queue. Output that would be too much is dropped; one line says
  // so.
  void Push(v1::LoadEvent event);

  // Nullopt when empty.
  std::optional<v1::LoadEvent> Pop();

  bool empty() const { return events_.empty(); }
  void clear() { events_.clear(); }

 private:
  bool HasRoomFor(uint64_t bytes) const { return output_bytes_ + bytes <= kMaxOutputBytes; }
  void PushOutput(v1::LoadEvent event);

  std::deque<v1::LoadEvent> events_;
  uint64_t output_bytes_ = 0;  // of what is in `events_`
  bool dropping_ = false;
};

}  // namespace kernix::server
