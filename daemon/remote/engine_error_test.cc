// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/engine_error.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kernix::remote {
namespace {

grpc::Status WithRetryInfo(int64_t seconds, int nanos) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(nanos);
  google::rpc::Status status;
  status.add_details()->PackFrom(google::rpc::Status());
  status.add_details()->PackFrom(info);
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "later", status.SerializeAsString());
}

TEST(RetryTest, OnlyWhatMayPassIsTriedAgain) {
  using Code = grpc::StatusCode;
  for (const Code code : {Code::UNAVAILABLE, Code::RESOURCE_EXHAUSTED, Code::ABORTED, Code::DEADLINE_EXCEEDED}) {
    EXPECT_TRUE(MayWorkLater(grpc::Status(code, ""))) << code;
  }
  for (const Code code : {Code::NOT_FOUND, Code::INVALID_ARGUMENT, Code::UNAUTHENTICATED, Code::PERMISSION_DENIED,
                          Code::UNIMPLEMENTED, Code::FAILED_PRECONDITION, Code::INTERNAL, Code::DATA_LOSS}) {
    EXPECT_FALSE(MayWorkLater(grpc::Status(code, ""))) << code;
  }
  EXPECT_TRUE(MayWorkLater(grpc::Status(Code::INTERNAL, "Received RST_STREAM with error code 2")));
}

TEST(RetryTest, TheEngineMaySayHowLongToWait) {
  EXPECT_EQ(AskedPause(WithRetryInfo(2, 500'000'000)), Duration(2500));
  EXPECT_EQ(AskedPause(WithRetryInfo(-1, 0)), std::nullopt);
  EXPECT_EQ(AskedPause(WithRetryInfo(INT64_MAX, 0)), std::chrono::hours(24));
  EXPECT_EQ(AskedPause(grpc::Status(grpc::StatusCode::UNAVAILABLE, "later")), std::nullopt);
  EXPECT_EQ(AskedPause(grpc::Status(grpc::StatusCode::UNAVAILABLE, "later", "no status")), std::nullopt);
}

TEST(RetryTest, PausesGrowAndDiffer) {
  std::set<Duration> seen;
  for (int i = 0; i < 100; ++i) {
    const Duration first = PauseBeforeRetry(1);
    const Duration third = PauseBeforeRetry(3);
    EXPECT_LE(first, Duration(50));
    EXPECT_GE(third, Duration(400));
    EXPECT_LE(third, Duration(800));
    seen.insert(third);
  }
  EXPECT_GT(seen.size(), 10U);
}

}  // namespace
}  // namespace kernix::remote
