// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd, with clients that ask for too much or stop talking.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/transport/local_user.h"
#include "tests/support/await.h"
#include "tests/support/kernixd_fixture.h"

namespace kernix::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class KernixdLimitsTest : public KernixdTest {};

TEST_F(KernixdLimitsTest, AnUploaderThatStallsMakesRoomForTheNext) {
  const auto daemon = Serve({"--upload-timeout", "2s"});
  const std::string header = "#define MINE 1\n";
  const auto client = Connect();
  LoadStream stalled(client->stub());
  stalled.Send(WithHeader(header));
  ASSERT_TRUE(stalled.Next()->has_need_blobs());  // the stalled client does nothing more

  const auto other_client = Connect();
  LoadStream other(other_client->stub());
  other.Send(WithHeader(header));
  const auto event = other.Next();
  ASSERT_TRUE(event && event->has_need_blobs());
  other.SendBlob(header);
  const LoadOutcome outcome = other.Finish();
  ASSERT_TRUE(outcome.result) << outcome.status.error_message();

  const LoadOutcome late = stalled.Finish();
  ASSERT_TRUE(late.failure);
  EXPECT_EQ(late.failure->kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(late.failure->message(), HasSubstr("did not send the headers"));
  EXPECT_THAT(late.failure->message(), HasSubstr("upload_timeout"));
  EXPECT_EQ(client->Stats()->builds(), 1u);
}

TEST_F(KernixdLimitsTest, AnUploaderWhoDripsIsNoBetterThanOneWhoStalls) {
  const auto daemon = Serve({"--upload-timeout", "1s"});
  const std::string header(1 << 20, '\n');
  const auto client = Connect();
  LoadStream stream(client->stub());
  stream.Send(WithHeader(header));
  ASSERT_TRUE(stream.Next()->has_need_blobs());
  while (stream.SendPiece(header, 1)) {
  }
  const LoadOutcome outcome = stream.Finish();
  ASSERT_TRUE(outcome.failure);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("did not send the headers"));
}

TEST_F(KernixdLimitsTest, OneUserCannotTakeEveryThread) {
  const auto daemon = Serve({"--max-loads-per-user", "1"});
  const std::string header = "#define MINE 1\n";
  const auto client = Connect();
  LoadStream first(client->stub());
  first.Send(WithHeader(header));
  ASSERT_TRUE(first.Next()->has_need_blobs());

  const LoadOutcome refused = Connect()->Load(AddKernel(1));
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.failure->message(), HasSubstr("max_loads_per_user"));

  first.SendBlob(header);
  EXPECT_TRUE(first.Finish().result);
  // The first load has its answer, but may not have left yet.
  LoadOutcome second;
  Await("room for the second load", [&] {
    second = Connect()->Load(AddKernel(1));
    return second.status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED;
  });
  EXPECT_TRUE(second.result) << second.status.error_message();
}

TEST_F(KernixdLimitsTest, ACompilerThatFillsTheDiskIsStopped) {
  const auto daemon = Serve({"--max-output-bytes", "8MiB"});
  const auto client = Connect();
  v1::LoadRequest request = AddKernel(1);
  *request.mutable_source(0)->mutable_text() += "char much[64 << 20] = {1};\n";
  const LoadOutcome outcome = client->Load(request);
  ASSERT_TRUE(outcome.failure) << outcome.status.error_message();
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("larger than 8388608 bytes"));
  EXPECT_THAT(outcome.failure->message(), HasSubstr("max_output_bytes"));
  EXPECT_TRUE(client->Load(AddKernel(1)).result);
}

TEST_F(KernixdLimitsTest, AShortSourceCannotHaveAllTheMemory) {
  const auto daemon = Serve({"--max-process-memory-bytes", "1GiB"});
  const auto client = Connect();
  v1::LoadRequest request = AddKernel(1);
  *request.mutable_source(0)->mutable_text() += "asm(\".rept 500000000\\n.quad 1\\n.endr\");\n";
  const LoadOutcome outcome = client->Load(request);
  ASSERT_TRUE(outcome.failure) << outcome.status.error_message();
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::RESOURCE) << outcome.failure->message();
  EXPECT_THAT(outcome.failure->message(), HasSubstr("1073741824 bytes, this kernixd's max_process_memory_bytes"));
  EXPECT_TRUE(client->Load(AddKernel(1)).result);
}

// Fifty connections that send nothing, then two that would.
TEST_F(KernixdLimitsTest, AUserWithTooManyConnectionsIsToldWhatToDo) {
  const auto daemon = Serve({"--max-connections-per-user", "50"});
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 50; ++i) idle.push_back(ConnectTo(place_.socket()).value());
  const auto refused = Connect()->Info();
  EXPECT_THAT(ToStd(refused.status().message()), HasSubstr("raise max_connections_per_user")) << refused.status();
  idle.clear();
  Await("the daemon to see that they have gone", [&] { return Connect()->Info().ok(); });
}

std::string Filler(size_t bytes) { return StrCat("/*", std::string(bytes, 'x'), "*/\n"); }

TEST_F(KernixdLimitsTest, RequestsOfOneUserAreHeldWithinABound) {
  const auto daemon = Serve({"--max-request-bytes-per-user", "32MiB"});  // a text counts four times
  const std::string header = "#define MINE 1\n";
  const auto client = Connect();
  v1::LoadRequest large = WithHeader(header);
  *large.mutable_source(0)->mutable_text() += Filler(6 << 20);
  LoadStream first(client->stub());
  first.Send(large);
  ASSERT_TRUE(first.Next()->has_need_blobs());

  v1::LoadRequest other = AddKernel(2);
  *other.mutable_source(0)->mutable_text() += Filler(3 << 20);
  const LoadOutcome refused = client->Load(other);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(refused.failure->message(), HasSubstr("raise max_request_bytes_per_user"));
  EXPECT_TRUE(client->Load(AddKernel(1)).result);  // small enough

  first.SendBlob(header);
  EXPECT_TRUE(first.Finish().result);
  LoadOutcome again;
  Await("room for the other load", [&] {
    again = client->Load(other);
    return !again.failure || again.failure->kind() != v1::ErrorDetail::RESOURCE;
  });
  EXPECT_TRUE(again.result) << again.status.error_message();
}

TEST_F(KernixdLimitsTest, AnUploadWaitsForRoom) {
  const auto daemon = Serve({"--max-request-bytes-per-user", "3MiB"});
  const auto client = Connect();
  const std::string one = Filler(2 << 20);
  const std::string other = StrCat(one, "\n");
  LoadStream first(client->stub());
  first.Send(WithHeader(one, 1));
  ASSERT_TRUE(first.Next()->has_need_blobs());
  LoadStream second(client->stub());
  second.Send(WithHeader(other, 2));  // asked for its header once the first has ended
  first.SendBlob(one);
  EXPECT_TRUE(first.Finish().result);
  const auto event = second.Next();
  ASSERT_TRUE(event && event->has_need_blobs());
  second.SendBlob(other);
  EXPECT_TRUE(second.Finish().result);
}

// Each fetch holds a thread of the daemon as long as its client does not read.
TEST_F(KernixdLimitsTest, EveryLoadMayBeFollowedByASlowFetch) {
  const auto daemon = Serve();
  const auto client = Connect();
  v1::LoadRequest request = AddKernel(1);
  *request.mutable_source(0)->mutable_text() += "char much[1200000] = {1};\n";  // more than a chunk
  const LoadOutcome built = client->Load(request);
  ASSERT_TRUE(built.result) << built.status.error_message();
  ASSERT_GT(built.result->artifact_size(), 1'200'000u);

  constexpr int kFetches = 450;
  std::vector<std::unique_ptr<FetchStream>> fetches;
  for (int i = 0; i < kFetches; ++i) {
    fetches.push_back(std::make_unique<FetchStream>(client->stub(), built.result->artifact_digest()));
  }
  for (const auto& fetch : fetches) ASSERT_TRUE(fetch->Next()) << fetch->Finish().error_message();
  for (const auto& fetch : fetches) EXPECT_TRUE(fetch->Finish().ok());
}

LoadOutcome LoadLarge(TestClient& client, size_t bytes) {
  v1::LoadRequest request = AddKernel(1);
  StrAppend(request.mutable_source(0)->mutable_text(), "char much[", bytes, "] = {1};\n");
  return client.Load(request);
}

// The resident memory of a process, now.
uint64_t ResidentBytes(pid_t pid) {
  const std::string statm = Env::Posix().ReadFile(StrCat("/proc/", pid, "/statm")).value();
  return std::stoull(statm.substr(statm.find(' '))) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(KernixdLimitsTest, AFetchThatStallsHoldsAPieceInMemory) {
  const auto daemon = Serve();
  const auto client = Connect();
  constexpr size_t kBytes = 50 << 20;
  const LoadOutcome built = LoadLarge(*client, kBytes);
  ASSERT_TRUE(built.result) << built.status.error_message();
  const std::string digest = built.result->artifact_digest();
  client->AwaitEndOfLearning();  // which takes memory of its own
  const uint64_t before = ResidentBytes(daemon->pid());
  std::vector<std::unique_ptr<FetchStream>> fetches;
  for (int i = 0; i < 12; ++i) {
    fetches.push_back(std::make_unique<FetchStream>(client->stub(), digest));
    ASSERT_TRUE(fetches.back()->Next());  // and nothing more
  }
  const uint64_t after = ResidentBytes(daemon->pid());
  EXPECT_LT(after, before + kBytes) << "twelve of them hold less than one artifact";
  RecordProperty("held_bytes", static_cast<int>(after > before ? after - before : 0));
  fetches.clear();
  EXPECT_EQ(DigestOf(client->Fetch(digest).value()).Raw(), digest) << "whole, from many pieces";
}

TEST_F(KernixdLimitsTest, OneUserCannotFetchWithoutEnd) {
  const auto daemon = Serve({"--max-fetches-per-user", "2"});
  const auto client = Connect();
  const LoadOutcome built = LoadLarge(*client, 8 << 20);
  ASSERT_TRUE(built.result) << built.status.error_message();
  const std::string digest = built.result->artifact_digest();
  FetchStream first(client->stub(), digest);
  auto second = std::make_unique<FetchStream>(client->stub(), digest);
  ASSERT_TRUE(first.Next() && second->Next());
  const absl::Status refused = Connect()->Fetch(digest).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("2 fetches"), HasSubstr("raise max_fetches_per_user")));
  EXPECT_TRUE(second->Finish().ok());
  // The client has all of it, but may not have left yet.
  absl::StatusOr<std::string> third;
  Await("room for the third fetch", [&] {
    third = Connect()->Fetch(digest);
    return !absl::IsResourceExhausted(third.status());
  });
  EXPECT_THAT(third, IsOk());
}

TEST_F(KernixdLimitsTest, ANameThatNobodyCouldReadIsRefused) {
  const auto daemon = Serve();
  v1::LoadRequest request = AddKernel(1);
  request.set_name("a\x1b[31mname");
  const LoadOutcome outcome = Connect()->Load(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("name"));
}

TEST_F(KernixdLimitsTest, AnErrorShowsBothEndsOfWhatItQuotes) {
  const auto daemon = Serve();
  v1::LoadRequest request = AddKernel(1);
  request.mutable_functions()->mutable_function(0)->add_tokens(std::string(1 << 20, 'x'));
  const LoadOutcome outcome = Connect()->Load(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_LT(outcome.failure->message().size(), 70'000u);
  EXPECT_THAT(outcome.failure->message(), AllOf(HasSubstr("unknown token 'xxx"), HasSubstr("Tokens: arg, ret")));
}

TEST_F(KernixdLimitsTest, AFlagThatNoCommandLineHoldsIsABadRequest) {
  const auto daemon = Serve();
  v1::LoadRequest request = AddKernel(1);
  request.mutable_options()->add_compile_flags("-f" + std::string(200'000, 'x'));
  const LoadOutcome outcome = Connect()->Load(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("fewer or shorter flags"));
}

TEST_F(KernixdLimitsTest, HeadersAreAskedForOnceThoughTheBuildIsAnother) {
  const auto daemon = Serve();
  const auto client = Connect();
  const std::string header = "#define MINE 1\n";
  LoadStream first(client->stub());
  first.Send(WithHeader(header, 1));
  ASSERT_TRUE(first.Next()->has_need_blobs());
  first.SendBlob(header);
  ASSERT_TRUE(first.Finish().result);
  const LoadOutcome second = client->Load(WithHeader(header, 2));  // sends no header
  ASSERT_TRUE(second.result) << second.status.error_message();
  EXPECT_FALSE(second.result->cache_hit());
}

}  // namespace
}  // namespace kernix::server
