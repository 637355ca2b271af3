// SPDX-License-Identifier: Apache-2.0
//
// The two directions of a Load call: events that wait to be sent, and the header contents that a client uploads in
// pieces.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/base/digest.h"
#include "daemon/plan/plan.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Events of a load that wait to be sent. A slow client must not delay a build that others wait for, so Push() never
// waits for room: newer progress replaces older progress, and compiler output beyond a limit is dropped.

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

// Assembles the header contents that a client uploads in pieces.

// Not thread-safe.
class BlobReceiver {
 public:
  // Expects the content of each of `digests`, at most `bytes` in all.
  BlobReceiver(const std::vector<Digest>& digests, uint64_t bytes);

  // INVALID_REQUEST for an unrequested blob, for a blob that begins before another is complete, for content that does
  // not match its digest, and for more bytes than announced.
  absl::Status Add(const v1::Blob& blob);

  // Whether all contents have arrived.
  bool complete() const { return expected_.empty(); }

  build::HeaderContents TakeContents() { return std::move(contents_); }

 private:
  absl::Status Append(const Digest& digest, const v1::Blob& blob);
  absl::Status FinishCurrent();

  absl::flat_hash_set<Digest> expected_;
  const uint64_t announced_bytes_;
  uint64_t received_bytes_ = 0;
  Digest current_;
  bool in_blob_ = false;
  std::string content_;  // of `current_`
  build::HeaderContents contents_;
};

}  // namespace kernix::server
