// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/traffic_meter.h"

#include <algorithm>
#include <chrono>

#include "common/base/strings.h"

namespace kernix::server {
namespace {

// "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
constexpr uint32_t kClientPreface = 24;

using Seconds = std::chrono::duration<double>;

}  // namespace

Duration UserTraffic::Wait(MonotonicTime now) {
  left_ = std::min(kPerSecond, left_ + Seconds(now - filled_at_).count() * kPerSecond);
  filled_at_ = now;
  return left_ > 0 ? Duration{0} : std::chrono::ceil<Duration>(Seconds((1 - left_) / kPerSecond));
}

TrafficMeter::TrafficMeter(UserTraffic& user) : user_(user), client_(kClientPreface), server_(0) {
  user_.Spend(UserTraffic::kAbandonedCall);
}

TrafficMeter::~TrafficMeter() {
  while (!calls_.empty()) Abandon(*calls_.begin());
}

absl::Status TrafficMeter::FromClient(std::string_view bytes) {
  user_.Spend(1);  // for the reading, if it comes byte by byte
  client_.Read(bytes, [this](const FrameHead& head) { Count(head); });
  if (header_bytes_ > kMaxHeaderBytes)
    return absl::ResourceExhaustedError(StrCat("the headers of a call have more than ", kMaxHeaderBytes, " bytes"));
  if (user_.calls > UserTraffic::kMaxCalls)
    return absl::ResourceExhaustedError(StrCat("more than ", UserTraffic::kMaxCalls, " calls at once"));
  return absl::OkStatus();
}

void TrafficMeter::Count(const FrameHead& head) {
  const bool asks = head.type == FrameType::kPing && !head.acknowledges();
  user_.Spend(asks ? UserTraffic::kPing : 1);
  if (head.type == FrameType::kReset) Abandon(head.stream);
  if (head.type == FrameType::kHeaders) Open(head.stream);
  if (head.type == FrameType::kHeaders || head.type == FrameType::kContinuation) AddHeaders(head.length);
}

void TrafficMeter::AddHeaders(uint32_t bytes) {
  user_.Spend(bytes * UserTraffic::kHeaderByte);
  header_bytes_ += bytes;
}

void TrafficMeter::Open(uint32_t stream) {
  header_bytes_ = 0;
  if (stream <= last_stream_) return;  // has been one
  last_stream_ = stream;
  calls_.insert(stream);
  ++user_.calls;
}

void TrafficMeter::Abandon(uint32_t stream) {
  if (calls_.contains(stream)) user_.Spend(UserTraffic::kAbandonedCall);
  End(stream);
}

void TrafficMeter::End(uint32_t stream) { user_.calls -= static_cast<int>(calls_.erase(stream)); }

void TrafficMeter::FromServer(std::string_view bytes) {
  server_.Read(bytes, [this](const FrameHead& head) {
    if (head.type == FrameType::kReset) Abandon(head.stream);
    if (head.ends_stream()) End(head.stream);
  });
}

}  // namespace kernix::server
