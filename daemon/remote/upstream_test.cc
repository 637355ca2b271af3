// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/upstream.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/base/error.h"
#include "daemon/remote/circuit_breaker.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::remote {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kNoLimit = uint64_t{1} << 40;
// What travels in one message: buildbox-casd names no limit.
constexpr size_t kBatchBytes = (size_t{2} << 20) - (size_t{64} << 10);

class UpstreamTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = new testing::CasdProcess; }
  static void TearDownTestSuite() { delete std::exchange(engine_, nullptr); }

  static UpstreamOptions Options() { return {.address = engine_->address()}; }

  // What `sizes` blobs come back as.
  void ExpectRoundTrip(const std::vector<Blob>& blobs) {
    ASSERT_THAT(upstream_->Write(blobs), IsOk());
    std::vector<exec::BlobDigest> digests;
    for (const Blob& blob : blobs) digests.push_back(blob.digest);
    const auto contents = upstream_->Read(digests, kNoLimit);
    ASSERT_THAT(contents, IsOk());
    ASSERT_EQ(contents->size(), blobs.size());
    for (size_t i = 0; i < blobs.size(); ++i) EXPECT_TRUE(*(*contents)[i] == *blobs[i].content) << i;
  }

  static testing::CasdProcess* engine_;
  SteppedEnv env_;
  std::unique_ptr<Upstream> upstream_ = OpenUpstream(env_, Options());
  UpstreamNumbers numbers_{*upstream_};
};

testing::CasdProcess* UpstreamTest::engine_ = nullptr;

TEST_F(UpstreamTest, SaysWhatTheEngineCanDo) {
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::HEALTH_UNSPECIFIED);
  const auto facts = upstream_->Facts();
  ASSERT_THAT(facts, IsOk());
  EXPECT_EQ(facts->max_batch_bytes, kBatchBytes);
  EXPECT_TRUE(facts->may_write_results);
  EXPECT_TRUE(facts->executes);
  EXPECT_THAT(upstream_->Facts(), IsOk());
  EXPECT_EQ(numbers_.Calls("facts", "done"), 1);
  const UpstreamState state = upstream_->state();
  EXPECT_EQ(state.health, v1::UpstreamStatus::ANSWERS);
  EXPECT_TRUE(state.facts);
  EXPECT_GT(state.since_unix_ms, 0);
}

TEST_F(UpstreamTest, SmallBlobsTravelTogether) {
  ExpectRoundTrip({MakeBlob("small"), MakeBlob(""), MakeBlob(std::string("\0\n\xff", 3)), MakeBlob("small")});
  EXPECT_EQ(numbers_["kernix_upstream_bytes_total{direction=\"sent\"}"], 8);
  EXPECT_EQ(numbers_["kernix_upstream_bytes_total{direction=\"received\"}"], 8);
}

TEST_F(UpstreamTest, BlobsAroundTheLimitOfAMessage) {
  std::vector<Blob> blobs;
  for (size_t size : {kBatchBytes - 129, kBatchBytes - 128, kBatchBytes - 127, kBatchBytes, kBatchBytes + 1}) {
    blobs.push_back(MakeBlob(RandomBytes(size)));
  }
  ExpectRoundTrip(blobs);
}

TEST_F(UpstreamTest, ALargeBlob) { ExpectRoundTrip({MakeBlob(RandomBytes(size_t{20} << 20))}); }

TEST_F(UpstreamTest, MoreSmallBlobsThanAMessageHolds) {
  std::vector<Blob> blobs;
  for (uint32_t i = 0; i < 1500; ++i) blobs.push_back(MakeBlob(RandomBytes(3000, i)));
  ExpectRoundTrip(blobs);
}

TEST_F(UpstreamTest, OnlyWhatTheEngineDoesNotHaveIsSent) {
  const Blob first = MakeBlob(RandomBytes(1000, 7));
  ASSERT_THAT(upstream_->Write({first}), IsOk());
  EXPECT_EQ(numbers_["kernix_upstream_bytes_total{direction=\"sent\"}"], 1000);
  ASSERT_THAT(upstream_->Write({first, MakeBlob(RandomBytes(500, 7))}), IsOk());
  EXPECT_EQ(numbers_["kernix_upstream_bytes_total{direction=\"sent\"}"], 1500);
}

TEST_F(UpstreamTest, AnAbsentBlobIsNamed) {
  for (const size_t size : {size_t{10}, size_t{10} << 20}) {
    exec::BlobDigest absent{DigestOf("never written"), size};
    EXPECT_THAT(upstream_->Read({absent}, kNoLimit).status(),
                HasError(absl::StatusCode::kNotFound, HasSubstr(absent.hash.Hex().substr(0, 12))));
  }
  EXPECT_EQ(numbers_.Calls("read", "absent"), 2);
  EXPECT_EQ(numbers_["kernix_upstream_retries_total"], 0);
}

TEST_F(UpstreamTest, ReadsNoMoreThanTheCallerTakes) {
  const exec::BlobDigest huge{DigestOf("huge"), uint64_t{1} << 62};
  for (const auto& digests :
       {std::vector{huge}, std::vector{huge, exec::BlobDigest{DigestOf("2"), uint64_t{1} << 63}}}) {
    const absl::Status status = upstream_->Read(digests, 1000).status();
    EXPECT_THAT(status, HasError(absl::StatusCode::kResourceExhausted, HasSubstr("1000 bytes")));
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  }
}

TEST_F(UpstreamTest, AResultComesBackAndIsReplaced) {
  const exec::BlobDigest action = exec::BlobDigestOf("an action");
  const Blob artifact = MakeBlob("an artifact");
  const Blob other = MakeBlob("another artifact");
  EXPECT_EQ(upstream_->FindResult(action).value(), std::nullopt);
  ASSERT_THAT(upstream_->Write({artifact, other, MakeBlob("notes")}), IsOk());
  const std::vector<OutputFile> files = {{"lib.so", artifact.digest}, {"notes/x", exec::BlobDigestOf("notes")}};
  ASSERT_THAT(upstream_->PutResult(action, files), IsOk());
  EXPECT_EQ(upstream_->FindResult(action).value(), files);
  const std::vector<OutputFile> others = {{"lib.so", other.digest}};
  ASSERT_THAT(upstream_->PutResult(action, others), IsOk());
  EXPECT_EQ(upstream_->FindResult(action).value(), others);
  EXPECT_EQ(numbers_.Calls("find_result", "absent"), 1);
  EXPECT_EQ(numbers_.Calls("find_result", "done"), 2);
  EXPECT_EQ(numbers_.Calls("put_result", "done"), 2);
}

TEST_F(UpstreamTest, AResultWhoseBlobsAreNotThereIsNoResult) {
  const exec::BlobDigest action = exec::BlobDigestOf("an action without blobs");
  ASSERT_THAT(upstream_->PutResult(action, {{"lib.so", exec::BlobDigestOf("never written either")}}), IsOk());
  EXPECT_EQ(upstream_->FindResult(action).value(), std::nullopt);
}

TEST_F(UpstreamTest, AnUnknownInstanceIsNamed) {
  UpstreamOptions options = Options();
  options.instance = "nowhere";
  const auto upstream = OpenUpstream(env_, options);
  const absl::Status status = upstream->FindResult(exec::BlobDigestOf("x")).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(options.address), HasSubstr("instance 'nowhere'")));
}

TEST_F(UpstreamTest, ManyThreadsShareIt) {
  std::vector<std::jthread> threads;
  for (uint32_t i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] { ExpectRoundTrip({MakeBlob(RandomBytes(100'000, i)), MakeBlob("shared")}); });
  }
}

TEST_F(UpstreamTest, AnEngineThatStartsAgainIsFoundAgain) {
  testing::CasdProcess engine;
  const auto upstream = OpenUpstream(env_, {.address = engine.address()});
  const Blob blob = MakeBlob("kept over a restart");
  ASSERT_THAT(upstream->Write({blob}), IsOk());
  engine.Kill();
  engine.Start();
  const auto contents = upstream->Read({blob.digest}, kNoLimit);
  ASSERT_THAT(contents, IsOk());
  EXPECT_EQ(*contents->front(), "kept over a restart");
}

TEST_F(UpstreamTest, WithoutAnEngineItFailsWithinItsTimeAndThenAtOnce) {
  const testing::TempFolder folder;
  const auto upstream =
      OpenUpstream(env_, {.address = "unix://" + folder.File("no-engine"), .timeout = std::chrono::seconds(30)});
  const UpstreamNumbers numbers(*upstream);
  for (int i = 0; i < CircuitBreaker::kFailuresToOpen; ++i) {
    const absl::Status status = upstream->FindResult(exec::BlobDigestOf("x")).status();
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("no-engine"), HasSubstr("Is the engine running")));
  }
  EXPECT_EQ(numbers["kernix_upstream_retries_total"], 3 * CircuitBreaker::kFailuresToOpen);
  EXPECT_EQ(numbers["kernix_upstream_breaker_openings_total"], 1);
  const absl::Status refused = upstream->Write({MakeBlob("x")});
  EXPECT_EQ(KindOf(refused), v1::ErrorDetail::UNREACHABLE) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("was not asked"));
  EXPECT_EQ(numbers.Calls("write", "refused"), 1);
  EXPECT_EQ(numbers["kernix_upstream_retries_total"], 3 * CircuitBreaker::kFailuresToOpen);
  EXPECT_EQ(upstream->state().health, v1::UpstreamStatus::BROKEN);
}

TEST(UpstreamOpenTest, OptionsThatDoNotGoTogetherAreRefused) {
  const testing::TempFolder folder;
  const std::string pem = folder.Write("a.pem", "-----BEGIN CERTIFICATE-----\n");
  const std::string text = folder.Write("text", "no PEM");
  const auto expect_refusal = [](const UpstreamOptions& options, const std::string& words) {
    const absl::Status status = Upstream::Open(Env::Posix(), options).status();
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect_refusal({.address = "engine:80"}, "grpc://HOST:PORT");
  expect_refusal({.address = "grpc://engine:80", .ca_file = pem}, "does not use TLS");
  expect_refusal({.address = "grpcs://engine:80", .ca_file = "/no/such.pem"}, "/no/such.pem");
  expect_refusal({.address = "grpcs://engine:80", .ca_file = text}, "is not a PEM file");
  expect_refusal({.address = "grpcs://engine:80", .certificate_file = pem}, "both certificate_file and key_file");
  expect_refusal({.address = "grpcs://engine:80", .key_file = pem}, "both certificate_file and key_file");
  expect_refusal({.address = "grpc://engine:80", .token_file = text}, "for everybody to read");
  expect_refusal({.address = "grpcs://engine:80", .token_file = "/no/such/token"}, "/no/such/token");
  expect_refusal({.address = "grpcs://engine:80", .token_file = text, .token_header = "two words"}, "token_header");
}

}  // namespace
}  // namespace kernix::remote
