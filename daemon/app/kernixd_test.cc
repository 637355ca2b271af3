// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd, as a process, with a real g++: what it serves.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"
#include "common/wire/grpc_status.h"
#include "common/wire/kernixd_exit.h"
#include "tests/support/kernixd_fixture.h"

namespace kernix::server {
namespace {

using testing::HasSubstr;

TEST_F(KernixdTest, SaysWhoItIs) {
  const auto daemon = Serve();
  const auto info = Connect()->Info();
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->pid(), daemon->pid());
  EXPECT_EQ(info->version(), Version());
  EXPECT_EQ(info->build_id(), BuildId());
  EXPECT_EQ(info->protocol_version(), kProtocolVersion);
  EXPECT_EQ(info->store_directory(), place_.store());
  EXPECT_FALSE(info->shared());
  EXPECT_FALSE(info->draining());
}

TEST_F(KernixdTest, HasTheStandardHealthServiceAndReflection) {
  const auto daemon = Serve();
  const auto client = Connect();
  const std::string serving = "\x08\x01";  // HealthCheckResponse{status: SERVING}
  EXPECT_EQ(client->CallRaw("/grpc.health.v1.Health/Check", "").value(), serving);
  EXPECT_EQ(client->CallRaw("/grpc.health.v1.Health/Check", "\x0a\x10kernix.v1.Kernix").value(), serving);
  // ServerReflectionRequest{list_services: "*"}
  EXPECT_THAT(client->CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*").value(),
              HasSubstr("kernix.v1.Kernix"));
}

TEST_F(KernixdTest, BuildsOnceThenServesFromTheCache) {
  const auto daemon = Serve();
  const auto client = Connect();
  const LoadOutcome built = client->Load(AddKernel(1));
  ASSERT_TRUE(built.result) << built.failure->DebugString();
  EXPECT_TRUE(built.status.ok());
  EXPECT_FALSE(built.result->cache_hit());
  const std::string artifact = Env::Posix().ReadFile(built.result->artifact_path()).value();
  EXPECT_EQ(DigestOf(artifact).Raw(), built.result->artifact_digest());
  EXPECT_EQ(client->Fetch(built.result->artifact_digest()).value(), artifact);

  const LoadOutcome hit = Connect()->Load(AddKernel(1));
  ASSERT_TRUE(hit.result);
  EXPECT_TRUE(hit.result->cache_hit());
  EXPECT_EQ(hit.result->artifact_digest(), built.result->artifact_digest());
  const auto stats = client->Stats();
  EXPECT_EQ(stats->builds(), 1u);
  EXPECT_EQ(stats->hits(), 1u);
  EXPECT_THAT(daemon->Log(), HasSubstr(StrCat("info load user=", LookUpUser(geteuid()).name, " name=adder key=")));
  EXPECT_THAT(daemon->Log(), HasSubstr("outcome=built"));
  EXPECT_THAT(daemon->Log(), HasSubstr("outcome=hit"));
}

TEST_F(KernixdTest, ManyWhoAskAtOnceGetOneBuildUnderAllTheirNames) {
  constexpr size_t kAskers = 40;
  const auto daemon = Serve();
  std::vector<LoadOutcome> outcomes(kAskers);
  std::vector<std::thread> askers;
  for (size_t i = 0; i < kAskers; ++i) {
    askers.emplace_back([this, i, &outcome = outcomes[i]] {
      v1::LoadRequest request = AddKernel(1);
      request.set_name(StrCat("adder ", i));
      outcome = Connect()->Load(request);
    });
  }
  for (std::thread& asker : askers) asker.join();
  for (const LoadOutcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.result) << outcome.status.error_message();
    EXPECT_EQ(outcome.result->artifact_digest(), outcomes[0].result->artifact_digest());
  }
  const auto client = Connect();
  const auto stats = client->Stats();
  EXPECT_EQ(stats->builds(), 1u);
  EXPECT_EQ(stats->hits() + stats->misses(), kAskers);
  for (size_t i = 0; i < kAskers; ++i) EXPECT_EQ(client->Purge(StrCat("adder ", i)).value(), 1u) << i;
}

TEST_F(KernixdTest, WhatWasBuiltIsAHitForTheNextDaemon) {
  {
    const auto daemon = Serve();
    ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
    daemon->Signal(SIGKILL);
    EXPECT_EQ(daemon->AwaitExit(), 128 + SIGKILL);
  }
  const auto daemon = Serve();  // also: replaces a socket that nobody answers
  EXPECT_TRUE(Connect()->Load(AddKernel(1)).result->cache_hit());
}

TEST_F(KernixdTest, ListsAndPurges) {
  const auto daemon = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Load(AddKernel(1)).result);
  grpc::ClientContext list_context;
  v1::ListCacheResponse list;
  ASSERT_TRUE(client->stub().ListCache(&list_context, v1::ListCacheRequest(), &list).ok());
  ASSERT_EQ(list.entry_size(), 1);
  EXPECT_EQ(list.entry(0).name(), "adder");
  EXPECT_EQ(list.entry(0).function(0), "add");

  grpc::ClientContext nothing_context;
  v1::PurgeCacheResponse purged;
  EXPECT_EQ(client->stub().PurgeCache(&nothing_context, v1::PurgeCacheRequest(), &purged).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(client->Purge("adder").value(), 1u);
  EXPECT_FALSE(client->Load(AddKernel(1)).result->cache_hit());
}

TEST_F(KernixdTest, ACompileErrorComesWhole) {
  const auto daemon = Serve();
  v1::LoadRequest request = AddKernel(1);
  *request.mutable_source(0)->mutable_text() += "int broken = nonsense;\n";
  const LoadOutcome outcome = Connect()->Load(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_FALSE(outcome.result);
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(outcome.failure->compiler_output(), HasSubstr("adder.cpp:7:"));
  EXPECT_THAT(outcome.failure->compiler_output(), HasSubstr("nonsense"));
  // The status travels in headers: it holds the error's kind, but not the compiler's output.
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(KindOf(FromGrpcStatus(outcome.status, "kernixd")), v1::ErrorDetail::COMPILATION);
  EXPECT_EQ(GetErrorDetail(FromGrpcStatus(outcome.status, "kernixd")).compiler_output(), "");
  EXPECT_TRUE(outcome.failure->has_failed_command());
  EXPECT_THAT(daemon->Log(), HasSubstr("kind=COMPILATION"));
}

TEST_F(KernixdTest, ARequestOverTheLimitIsRefusedInWords) {
  const auto daemon = Serve({"--max-request-bytes", "64KiB"});
  v1::LoadRequest request = AddKernel(1);
  request.mutable_source(0)->mutable_text()->append(100'000, '\n');
  const auto client = Connect();
  const LoadOutcome outcome = client->Load(request);
  ASSERT_TRUE(outcome.failure) << outcome.status.error_message();
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("at most 65536"));
  EXPECT_THAT(outcome.failure->message(), HasSubstr("max_request_bytes"));
  EXPECT_TRUE(client->Load(AddKernel(1)).result);
}

TEST_F(KernixdTest, ARequestFarOverTheLimitDoesNoHarm) {
  const auto daemon = Serve({"--max-request-bytes", "64KiB"});
  v1::LoadRequest request = AddKernel(1);
  request.mutable_source(0)->mutable_text()->append(8 << 20, '\n');
  const auto client = Connect();
  EXPECT_EQ(client->Load(request).status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(client->Load(AddKernel(1)).result);
}

TEST_F(KernixdTest, ALoadWithoutARequestIsRefused) {
  const auto daemon = Serve();
  const auto client = Connect();
  LoadStream stream(client->stub());
  stream.HalfClose();
  EXPECT_THAT(stream.Finish().failure->message(), HasSubstr("begins with a request"));
}

TEST_F(KernixdTest, AsksForHeadersOnce) {
  const auto daemon = Serve();
  const auto client = Connect();
  const std::string header = "#define MINE 1\n";
  LoadStream stream(client->stub());
  stream.Send(WithHeader(header));
  const auto event = stream.Next();
  ASSERT_TRUE(event && event->has_need_blobs()) << (event ? event->DebugString() : "");
  EXPECT_EQ(event->need_blobs().digest(0), DigestOf(header).Raw());
  stream.SendBlob(header);
  const LoadOutcome outcome = stream.Finish();
  ASSERT_TRUE(outcome.result) << outcome.failure->DebugString();
  EXPECT_FALSE(outcome.result->cache_hit());

  const LoadOutcome hit = client->Load(WithHeader(header));  // sends no header
  ASSERT_TRUE(hit.result);
  EXPECT_TRUE(hit.result->cache_hit());
}

TEST_F(KernixdTest, AClientThatSendsNoHeadersIsToldSo) {
  const auto daemon = Serve();
  const auto client = Connect();
  LoadStream stream(client->stub());
  stream.Send(WithHeader("x"));
  stream.HalfClose();
  const LoadOutcome outcome = stream.Finish();
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("headers"));
}

TEST_F(KernixdTest, HeadersOverTheLimitAreRefusedBeforeTheyAreSent) {
  const auto daemon = Serve({"--max-request-bytes", "64KiB"});
  const LoadOutcome outcome = Connect()->Load(WithHeader(std::string(100'000, '\n')));
  ASSERT_TRUE(outcome.failure);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("max_request_bytes"));
}

TEST_F(KernixdTest, ACancelledLoadLeaves) {
  const auto daemon = Serve();
  const auto client = Connect();
  LoadStream stream(client->stub());
  stream.Send(WithHeader("x"));
  ASSERT_TRUE(stream.Next()->has_need_blobs());
  stream.Cancel();
  EXPECT_EQ(stream.Finish().status.error_code(), grpc::StatusCode::CANCELLED);
  // No client is connected: the drain has nothing to wait for.
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

}  // namespace
}  // namespace kernix::server
