// SPDX-License-Identifier: Apache-2.0
//
// What a user's connections cost gRPC, which has no limit of its own for what takes a client a few bytes: it queues
// calls that were reset, and answers whatever asks for an answer.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/transport/frame_reader.h"

namespace kernix::server {

// All connections of one user. The unit of cost is a frame. Not thread-safe.
class UserTraffic {
 public:
  // Most frames cost gRPC next to nothing, and clients at full speed send tens of thousands a second.
  static constexpr double kPerSecond = 400'000;
  // A call that ends before kernixd has ended it: gRPC goes on with it for a while, and nothing tells how long. A new
  // connection costs as much.
  static constexpr double kAbandonedCall = kPerSecond / 500;
  // gRPC takes many of them for abuse, and keeps what it has to say about that.
  static constexpr double kPing = kPerSecond / 4000;
  static constexpr double kHeaderByte = 0.25;
  // More than max_loads_per_user and max_fetches_per_user together let a user have.
  static constexpr int kMaxCalls = 2000;

  explicit UserTraffic(MonotonicTime now) : filled_at_(now) {}

  void Spend(double cost) { left_ -= cost; }
  // How long the user must wait until more may be spent; 0: not at all.
  Duration Wait(MonotonicTime now);

  int calls = 0;  // under way

 private:
  double left_ = kPerSecond;  // at most what comes in a second
  MonotonicTime filled_at_;
};

// One connection. Not thread-safe.
class TrafficMeter {
 public:
  // gRPC takes 8 KiB of headers for a call.
  static constexpr uint32_t kMaxHeaderBytes = 32 << 10;

  explicit TrafficMeter(UserTraffic& user);
  ~TrafficMeter();  // abandons the calls that are under way
  TrafficMeter(const TrafficMeter&) = delete;
  TrafficMeter& operator=(const TrafficMeter&) = delete;

  // kResourceExhausted if the connection has to be closed.
  absl::Status FromClient(std::string_view bytes);
  void FromServer(std::string_view bytes);

 private:
  void Count(const FrameHead& head);
  void AddHeaders(uint32_t bytes);
  void Open(uint32_t stream);
  void Abandon(uint32_t stream);
  void End(uint32_t stream);

  UserTraffic& user_;
  FrameReader client_;
  FrameReader server_;
  std::set<uint32_t> calls_;  // streams that kernixd has not ended
  uint32_t last_stream_ = 0;
  uint64_t header_bytes_ = 0;  // of the call whose headers came last
};

}  // namespace kernix::server
