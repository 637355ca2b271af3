// SPDX-License-Identifier: Apache-2.0
//
// Events of a load that wait to be sent. A slow client must not delay a build that others wait for, so Push() never
// waits for room: newer progress replaces older progress, and compiler output beyond a limit is dropped.
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

  // Replaces progress that is still last in the queue by newer progress. Drops output beyond the limit and adds a line
  // that says so.
  void Push(v1::LoadEvent event);

  // nullopt if empty.
  std::optional<v1::LoadEvent> Pop();

  bool empty() const { return events_.empty(); }
  void clear() { events_.clear(); }

 private:
  bool HasRoomFor(uint64_t bytes) const { return output_bytes_ + bytes <= kMaxOutputBytes; }
  void PushOutput(v1::LoadEvent event);

  std::deque<v1::LoadEvent> events_;
  uint64_t output_bytes_ = 0;  // of the events in `events_`
  bool dropping_ = false;
};

}  // namespace kernix::server
