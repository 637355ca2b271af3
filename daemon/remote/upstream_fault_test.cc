// SPDX-License-Identifier: Apache-2.0
//
// Upstream before an engine that fails in all the ways that we know.
#include <gtest/gtest.h>

#include <thread>

#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "common/base/error.h"
#include "daemon/remote/circuit_breaker.h"
#include "daemon/remote/shared_results.h"
#include "daemon/remote/upstream.h"
#include "google/bytestream/bytestream.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/support/await.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::remote {
namespace {

namespace reapi = build::bazel::remote::execution::v2;

using ::testing::HasSubstr;

constexpr uint64_t kNoLimit = uint64_t{1} << 40;
constexpr size_t kLarge = size_t{5} << 20;

grpc::Status Unavailable() { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the engine is busy"); }

class UpstreamFaultTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = new testing::CasdProcess; }
  static void TearDownTestSuite() { delete std::exchange(engine_, nullptr); }

  void SetUp() override { ASSERT_THAT(upstream_->Write({small_, large_}), IsOk()); }

  absl::Status ReadBoth() {
    const auto contents = upstream_->Read({small_.digest, large_.digest}, kNoLimit);
    if (!contents.ok()) return contents.status();
    EXPECT_EQ(*contents->front(), *small_.content);
    EXPECT_TRUE(*contents->back() == *large_.content);
    return absl::OkStatus();
  }
  int64_t Retries() const { return numbers_["kernix_upstream_retries_total"]; }

  static testing::CasdProcess* engine_;
  const Blob small_ = MakeBlob("small");
  const Blob large_ = MakeBlob(RandomBytes(kLarge));
  SteppedEnv env_;
  testing::FaultProxy proxy_{engine_->address()};
  std::unique_ptr<Upstream> upstream_ =
      OpenUpstream(env_, {.address = proxy_.address(), .timeout = std::chrono::seconds(60)});
  UpstreamNumbers numbers_{*upstream_};
};

testing::CasdProcess* UpstreamFaultTest::engine_ = nullptr;

TEST_F(UpstreamFaultTest, WhatPassesIsTriedAgain) {
  for (const auto code :
       {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::ABORTED}) {
    for (const char* method : {"BatchReadBlobs", "Read"}) {
      const int64_t before = Retries();
      proxy_.Inject({.method = method, .times = 2, .answer = grpc::Status(code, "not now")});
      EXPECT_THAT(ReadBoth(), IsOk()) << method;
      EXPECT_EQ(Retries() - before, 2) << method;
    }
  }
}

TEST_F(UpstreamFaultTest, RetriesHaveABound) {
  proxy_.Inject({.method = "GetActionResult", .times = 0, .answer = Unavailable()});
  const absl::Status status = upstream_->FindResult(exec::BlobDigestOf("x")).status();
  EXPECT_THAT(status, HasError(absl::StatusCode::kUnavailable, HasSubstr("the engine is busy")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("in 4 tries"));
  EXPECT_EQ(proxy_.Calls("GetActionResult"), 4);
  EXPECT_EQ(numbers_.Calls("find_result", "failed"), 1);
}

TEST_F(UpstreamFaultTest, WhatCannotPassIsNotTriedAgain) {
  proxy_.Inject({.method = "GetActionResult",
                 .times = 0,
                 .answer = grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "not you")});
  const absl::Status status = upstream_->FindResult(exec::BlobDigestOf("x")).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST) << status;
  EXPECT_EQ(proxy_.Calls("GetActionResult"), 1);
}

// With a pause that is longer than the time it has, there is no point in waiting.
TEST_F(UpstreamFaultTest, APauseThatTheEngineAsksForIsRespected) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(3600);
  google::rpc::Status details;
  details.set_code(grpc::StatusCode::UNAVAILABLE);
  details.add_details()->PackFrom(info);
  proxy_.Inject({.method = "GetActionResult",
                 .answer = grpc::Status(grpc::StatusCode::UNAVAILABLE, "in an hour", details.SerializeAsString())});
  EXPECT_THAT(upstream_->FindResult(exec::BlobDigestOf("x")).status(),
              HasError(absl::StatusCode::kUnavailable, HasSubstr("in an hour")));
  EXPECT_EQ(proxy_.Calls("GetActionResult"), 1);
}

TEST_F(UpstreamFaultTest, AStreamThatBreaksIsReadAgain) {
  proxy_.Inject({.method = "Read", .times = 2, .cut_after = 1});
  EXPECT_THAT(ReadBoth(), IsOk());
  EXPECT_EQ(proxy_.Calls("Read"), 3);
}

TEST_F(UpstreamFaultTest, AStreamThatAlwaysBreaksIsAnError) {
  proxy_.Inject({.method = "Read", .times = 0, .cut_after = 1});
  EXPECT_THAT(ReadBoth(), HasError(absl::StatusCode::kUnavailable, HasSubstr("send blob")));
}

TEST_F(UpstreamFaultTest, AnUploadThatBreaksIsSentAgain) {
  const Blob blob = MakeBlob(RandomBytes(kLarge, 11));
  proxy_.Inject({.method = "Write", .times = 1, .cut_after = 2});
  ASSERT_THAT(upstream_->Write({blob}), IsOk());
  EXPECT_EQ(Retries(), 1);
  EXPECT_TRUE(*upstream_->Read({blob.digest}, kNoLimit).value().front() == *blob.content);
}

TEST_F(UpstreamFaultTest, HalfAStreamIsNeverTaken) {
  int messages = 0;
  proxy_.Inject({.method = "Read", .change = [&](google::protobuf::Message& message) {
                   if (++messages > 1) static_cast<google::bytestream::ReadResponse&>(message).clear_data();
                 }});
  const absl::Status status = ReadBoth();
  EXPECT_THAT(status, HasError(absl::StatusCode::kInternal, HasSubstr("other bytes")));
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INTERNAL);
}

TEST_F(UpstreamFaultTest, MoreThanTheBlobIsNeverTaken) {
  proxy_.Inject({.method = "Read", .change = [](google::protobuf::Message& message) {
                   static_cast<google::bytestream::ReadResponse&>(message).mutable_data()->append("more");
                 }});
  EXPECT_EQ(KindOf(ReadBoth()), v1::ErrorDetail::INTERNAL);
}

TEST_F(UpstreamFaultTest, OtherBytesAreNeverTaken) {
  proxy_.Inject({.method = "Read", .change = [](google::protobuf::Message& message) {
                   static_cast<google::bytestream::ReadResponse&>(message).mutable_data()->front() ^= 1;
                 }});
  EXPECT_THAT(ReadBoth(), HasError(absl::StatusCode::kInternal, HasSubstr("other bytes")));
  proxy_.Inject({.method = "BatchReadBlobs", .change = [](google::protobuf::Message& message) {
                   static_cast<reapi::BatchReadBlobsResponse&>(message).mutable_responses(0)->set_data("smalL");
                 }});
  EXPECT_THAT(ReadBoth(), HasError(absl::StatusCode::kInternal, HasSubstr("other bytes")));
  EXPECT_EQ(numbers_.Calls("read", "failed"), 2);
  EXPECT_THAT(ReadBoth(), IsOk());
}

TEST_F(UpstreamFaultTest, ABlobThatIsSwappedForAnotherIsNeverTaken) {
  const Blob other = MakeBlob("other");
  proxy_.Inject({.method = "BatchReadBlobs", .change = [&](google::protobuf::Message& message) {
                   auto& response = *static_cast<reapi::BatchReadBlobsResponse&>(message).mutable_responses(0);
                   response.set_data(std::string(*other.content));
                   response.mutable_digest()->set_hash(other.digest.hash.Hex());
                   response.mutable_digest()->set_size_bytes(static_cast<int64_t>(other.digest.size));
                 }});
  EXPECT_THAT(ReadBoth(), HasError(absl::StatusCode::kInternal, HasSubstr("left out")));
}

TEST_F(UpstreamFaultTest, AnAnswerThatLeavesABlobOutIsAnError) {
  proxy_.Inject({.method = "BatchReadBlobs", .change = [](google::protobuf::Message& message) {
                   static_cast<reapi::BatchReadBlobsResponse&>(message).clear_responses();
                 }});
  EXPECT_THAT(ReadBoth(), HasError(absl::StatusCode::kInternal, HasSubstr("left out blob")));
}

TEST_F(UpstreamFaultTest, ABlobOfABatchThatIsRefusedIsTriedAgain) {
  proxy_.Inject({.method = "BatchReadBlobs", .change = [](google::protobuf::Message& message) {
                   auto& response = *static_cast<reapi::BatchReadBlobsResponse&>(message).mutable_responses(0);
                   response.mutable_status()->set_code(grpc::StatusCode::UNAVAILABLE);
                   response.clear_data();
                 }});
  EXPECT_THAT(ReadBoth(), IsOk());
  EXPECT_EQ(Retries(), 1);
}

TEST_F(UpstreamFaultTest, AResultOfACommandThatFailedIsNone) {
  const exec::BlobDigest action = exec::BlobDigestOf("fails");
  ASSERT_THAT(upstream_->PutResult(action, {{"a", small_.digest}}), IsOk());
  proxy_.Inject({.method = "GetActionResult", .change = [](google::protobuf::Message& message) {
                   static_cast<reapi::ActionResult&>(message).set_exit_code(1);
                 }});
  EXPECT_EQ(upstream_->FindResult(action).value(), std::nullopt);
  EXPECT_EQ(upstream_->FindResult(action).value()->size(), 1U);
}

TEST_F(UpstreamFaultTest, AResultWithoutDigestsIsAnError) {
  const exec::BlobDigest action = exec::BlobDigestOf("without digests");
  ASSERT_THAT(upstream_->PutResult(action, {{"lib.so", small_.digest}}), IsOk());
  proxy_.Inject({.method = "GetActionResult", .change = [](google::protobuf::Message& message) {
                   static_cast<reapi::ActionResult&>(message).mutable_output_files(0)->clear_digest();
                 }});
  EXPECT_THAT(upstream_->FindResult(action).status(), HasError(absl::StatusCode::kInternal, HasSubstr("'lib.so'")));
}

TEST_F(UpstreamFaultTest, AnEngineThatHangsCostsNoMoreThanTheTimeout) {
  const auto hurried = OpenUpstream(env_, {.address = proxy_.address(), .timeout = Duration(300)});
  const UpstreamNumbers numbers(*hurried);
  proxy_.Inject({.method = "GetActionResult", .times = 0, .hang = true});
  const absl::Status status = hurried->FindResult(exec::BlobDigestOf("x")).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE) << status;
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(numbers["kernix_upstream_retries_total"], 1) << "one try that hangs leaves time for another";
}

TEST_F(UpstreamFaultTest, OneTryThatHangsIsFollowedByAnother) {
  const auto hurried = OpenUpstream(env_, {.address = proxy_.address(), .timeout = std::chrono::seconds(4)});
  proxy_.Inject({.method = "GetActionResult", .times = 1, .hang = true});
  EXPECT_EQ(hurried->FindResult(exec::BlobDigestOf("x")).value(), std::nullopt);
}

TEST_F(UpstreamFaultTest, ACancelledCallEndsAndBlamesNobody) {
  proxy_.Inject({.method = "Read", .times = 0, .hang = true});
  for (int i = 0; i < 2 * CircuitBreaker::kFailuresToOpen; ++i) {
    Cancellation cancellation;
    std::jthread canceller([&] {
      Await("the call", [&] { return proxy_.Calls("Read") > i; });
      cancellation.Cancel();
    });
    const absl::Status status = upstream_->Read({large_.digest}, kNoLimit, &cancellation).status();
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::CANCELLED) << status;
  }
  EXPECT_EQ(numbers_.Calls("read", "cancelled"), 2 * CircuitBreaker::kFailuresToOpen);
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::ANSWERS);
}

TEST_F(UpstreamFaultTest, ABrokenEngineIsLeftAloneAndAskedFromTimeToTime) {
  proxy_.Inject({.method = "GetActionResult", .times = 0, .answer = grpc::Status(grpc::StatusCode::INTERNAL, "ill")});
  const auto find = [&] { return upstream_->FindResult(exec::BlobDigestOf("x")).status(); };
  for (int i = 0; i < CircuitBreaker::kFailuresToOpen; ++i) EXPECT_EQ(find().code(), absl::StatusCode::kInternal);
  const int calls = proxy_.Calls("GetActionResult");
  EXPECT_THAT(find(), HasError(absl::StatusCode::kUnavailable, HasSubstr("ill")));
  EXPECT_EQ(KindOf(ReadBoth()), v1::ErrorDetail::UNREACHABLE);
  EXPECT_EQ(proxy_.Calls("GetActionResult"), calls) << "it was asked";
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::BROKEN);
  EXPECT_THAT(upstream_->state().last_error, HasSubstr("ill"));

  env_.AdvanceClock(CircuitBreaker::kFirstPause);
  EXPECT_EQ(find().code(), absl::StatusCode::kInternal) << "a probe that fails";
  EXPECT_EQ(find().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(proxy_.Calls("GetActionResult"), calls + 1);

  proxy_.Clear();
  env_.AdvanceClock(2 * CircuitBreaker::kFirstPause);
  EXPECT_THAT(find(), IsOk());
  EXPECT_THAT(ReadBoth(), IsOk());
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::ANSWERS);
  EXPECT_EQ(numbers_["kernix_upstream_breaker_openings_total"], 1);
  EXPECT_EQ(proxy_.Calls("GetCapabilities"), 2) << "what the engine can do is asked again after a break";
}

// It answers what the action cache has, and no blob in time.
TEST_F(UpstreamFaultTest, AnEngineWithWhichAllQueriesAreLateIsLeftAlone) {
  const Digest key = DigestOf("a key of slow blobs");
  ASSERT_THAT(SharedResults(*upstream_, {}).Put(key, {.files = {{"a", small_.content}}}, nullptr), IsOk());
  const auto upstream = OpenUpstream(env_, {.address = proxy_.address(), .timeout = Duration(300)});
  ASSERT_THAT(upstream->Facts(), IsOk());
  SharedResults results(*upstream, {});
  const auto query = [&] {
    const Limits limits(nullptr, env_.Now() + upstream->timeout());
    return results
        .Find(
            key, [](const std::string&) { return std::nullopt; }, kNoLimit, limits)
        .status();
  };
  proxy_.Inject({.method = "BatchReadBlobs", .times = 0, .hang = true});
  for (int i = 0; i < CircuitBreaker::kFailuresToOpen; ++i) {
    EXPECT_EQ(upstream->state().health, v1::UpstreamStatus::ANSWERS);
    EXPECT_EQ(query().code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(upstream->state().health, v1::UpstreamStatus::BROKEN);
  const int calls = proxy_.Calls("GetActionResult");
  EXPECT_EQ(query().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(proxy_.Calls("GetActionResult"), calls) << "it was asked";

  env_.AdvanceClock(CircuitBreaker::kFirstPause);
  EXPECT_EQ(query().code(), absl::StatusCode::kDeadlineExceeded) << "the action cache answers the probe";
  env_.AdvanceClock(CircuitBreaker::kFirstPause);
  EXPECT_EQ(query().code(), absl::StatusCode::kUnavailable) << "the pause has grown";

  proxy_.Clear();
  env_.AdvanceClock(CircuitBreaker::kFirstPause);
  EXPECT_THAT(query(), IsOk());
  EXPECT_EQ(upstream->state().health, v1::UpstreamStatus::ANSWERS);
}

TEST_F(UpstreamFaultTest, AnEngineWithoutSha256IsRefused) {
  proxy_.Inject({.method = "GetCapabilities", .times = 0, .change = [](google::protobuf::Message& message) {
                   auto& cache = *static_cast<reapi::ServerCapabilities&>(message).mutable_cache_capabilities();
                   cache.clear_digest_functions();
                   cache.add_digest_functions(static_cast<reapi::DigestFunction::Value>(9));
                 }});
  const auto upstream = OpenUpstream(env_, {.address = proxy_.address()});
  const absl::Status status = upstream->Facts().status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("SHA-256"));
}

TEST_F(UpstreamFaultTest, AnEngineThatDiesInTheMiddleIsAnErrorAndNothingElse) {
  testing::CasdProcess engine;
  testing::FaultProxy proxy(engine.address());
  const auto upstream = OpenUpstream(env_, {.address = proxy.address(), .timeout = std::chrono::seconds(30)});
  ASSERT_THAT(upstream->Write({large_}), IsOk());
  proxy.Inject({.method = "Read", .change = [&](google::protobuf::Message&) { engine.Kill(); }});
  const auto contents = upstream->Read({large_.digest}, kNoLimit);
  if (contents.ok()) {
    EXPECT_TRUE(*contents->front() == *large_.content) << "it was fast enough";
  } else {
    EXPECT_EQ(KindOf(contents.status()), v1::ErrorDetail::UNREACHABLE) << contents.status();
  }
  engine.Start();
  // The proxy may wait for a moment before it connects again.
  Await("the blob", [&] { return upstream->Read({large_.digest}, kNoLimit).ok(); });
}

}  // namespace
}  // namespace kernix::remote
