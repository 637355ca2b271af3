// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/retry.h"

#include <chrono>

#include "absl/strings/match.h"
#include "common/base/jitter.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kernix::remote {
namespace {

constexpr Duration kFirstPause{50};
constexpr int kGrowth = 4;

}  // namespace

bool MayWorkLater(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:  // of one try
    case grpc::StatusCode::CANCELLED:          // not by us: the caller looks at that first
      return true;
    case grpc::StatusCode::INTERNAL:  // a stream that broke in the middle
      return absl::StrContains(status.error_message(), "RST_STREAM");
    default:
      return false;
  }
}

std::optional<Duration> AskedPause(const grpc::Status& status) {
  google::rpc::Status rpc;
  if (!rpc.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& any : rpc.details()) {
    google::rpc::RetryInfo info;
    if (!any.UnpackTo(&info) || info.retry_delay().seconds() < 0 || info.retry_delay().nanos() < 0) continue;
    return std::chrono::seconds(std::min<int64_t>(info.retry_delay().seconds(), 86'400)) +
           Duration(info.retry_delay().nanos() / 1'000'000);
  }
  return std::nullopt;
}

Duration PauseBeforeRetry(int retry) {
  Duration longest = kFirstPause;
  for (int i = 1; i < retry; ++i) longest *= kGrowth;
  return Jittered(longest);
}

}  // namespace kernix::remote
