// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/lookup_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/wire/quick_lookup.h"
#include "tests/support/await.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const IdentityPtr kAlice = std::make_shared<TestIdentity>(70001);
const IdentityPtr kBob = std::make_shared<TestIdentity>(70002);

class LookupServerTest : public BackendFixture {
 protected:
  // The client's end of a connection on which a lookup has begun but is not complete.
  static UniqueFd Begin(LookupServer& server, IdentityPtr user) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    UniqueFd client(ends[0]);
    EXPECT_EQ(send(client.get(), kLookupMagic.data(), kLookupMagic.size(), 0), 8);
    server.Serve(UniqueFd(ends[1]), std::move(user));
    return client;
  }

  // Whether the server has closed it by now.
  static bool IsOver(const UniqueFd& client) {
    char byte = 0;
    return recv(client.get(), &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
  }

  std::unique_ptr<LookupServer> Start(LookupOptions options) {
    return LookupServer::Start(parts_.backend(), options).value();
  }

  // Sends a frame, and receives the answer's.
  static absl::StatusOr<std::string> Ask(const UniqueFd& client, std::string_view prefix, std::string_view question) {
    const MonotonicTime soon = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    KERNIX_RETURN_IF_ERROR(SendFrame(client.get(), prefix, question, soon));
    return ReceiveFrame(client.get(), 1 << 20, soon);
  }

  static constexpr LookupOptions kPatient{.patience = std::chrono::hours(1), .keep_time = std::chrono::hours(1)};
};

TEST_F(LookupServerTest, AUserHasABoundedNumberAtOnce) {
  const auto started = Start(kPatient);
  LookupServer& server = *started;
  std::vector<UniqueFd> clients;
  for (int i = 0; i < LookupServer::kMaxPerUser; ++i) clients.push_back(Begin(server, kAlice));
  for (const UniqueFd& client : clients) EXPECT_FALSE(IsOver(client));
  EXPECT_TRUE(IsOver(Begin(server, kAlice)));
  EXPECT_FALSE(IsOver(Begin(server, kBob)));
  clients.pop_back();
  Await("room for one more", [&] { return !IsOver(Begin(server, kAlice)); });
}

TEST_F(LookupServerTest, ARefusalIsCountedByItsReason) {
  MetricsRegistry registry;
  parts_.backend().metrics.Register(registry);
  const auto started = Start(kPatient);
  LookupServer& server = *started;
  std::vector<UniqueFd> clients;
  for (int i = 0; i < LookupServer::kMaxPerUser; ++i) clients.push_back(Begin(server, kAlice));
  EXPECT_TRUE(IsOver(Begin(server, kAlice)));
  server.Stop();
  EXPECT_TRUE(IsOver(Begin(server, kBob)));
  EXPECT_THAT(registry.Text(), AllOf(HasSubstr("kernix_refusals_total{reason=\"lookups\"} 1\n"),
                                     HasSubstr("kernix_refusals_total{reason=\"draining\"} 1\n")));
}

TEST_F(LookupServerTest, OneThatStopsInTheMiddleIsGivenUp) {
  const auto server = Start({.patience = std::chrono::milliseconds(1)});
  const UniqueFd client = Begin(*server, kAlice);
  AwaitReadable("the end of the connection", client.get());
  EXPECT_TRUE(IsOver(client));
}

TEST_F(LookupServerTest, AConnectionIsKeptForTheNextQuestion) {
  const auto server = Start(kPatient);
  const UniqueFd client = Begin(*server, kAlice);
  EXPECT_EQ(server->kept(), 0);
  for (const std::string question : {"", "nonsense", ""}) {
    const auto answer = Ask(client, "", question);
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(*answer, "");
    Await("the connection to be kept", [&] { return server->kept() == 1; });
  }
  EXPECT_EQ(server->asked(), 3u);
  EXPECT_FALSE(IsOver(client));
  server->Stop();
  EXPECT_TRUE(IsOver(client));
  EXPECT_EQ(server->kept(), 0);
}

TEST_F(LookupServerTest, WhatAClientClosesIsNotKept) {
  const auto server = Start(kPatient);
  {
    const UniqueFd client = Begin(*server, kAlice);
    ASSERT_THAT(Ask(client, "", ""), IsOk());
    Await("the connection to be kept", [&] { return server->kept() == 1; });
  }
  Await("its end", [&] { return server->kept() == 0; });
}

TEST_F(LookupServerTest, AQuestionBeforeTheAnswerToTheOneBeforeItEndsTheConnection) {
  const auto server = Start(kPatient);
  const UniqueFd client = Begin(*server, kAlice);
  const std::string two = EncodeFrameLength(0) + EncodeFrameLength(0);
  ASSERT_EQ(send(client.get(), two.data(), two.size(), 0), static_cast<ssize_t>(two.size()));
  AwaitReadable("the end of the connection", client.get());
  EXPECT_TRUE(IsOver(client));
}

TEST_F(LookupServerTest, ASilentConnectionIsClosed) {
  const auto server = Start({.keep_time = std::chrono::milliseconds(1)});
  const UniqueFd client = Begin(*server, kAlice);
  ASSERT_THAT(Ask(client, "", ""), IsOk());
  AwaitReadable("the end of the connection", client.get());
  EXPECT_TRUE(IsOver(client));
  Await("nothing to be kept", [&] { return server->kept() == 0; });
}

TEST_F(LookupServerTest, EachUserMayKeepSomeConnections) {
  LookupOptions options = kPatient;
  options.max_kept_per_user = 2;
  const auto server = Start(options);
  std::vector<UniqueFd> clients;
  for (const IdentityPtr& user : {kAlice, kBob, kAlice, kAlice}) {
    clients.push_back(Begin(*server, user));
    ASSERT_THAT(Ask(clients.back(), "", ""), IsOk());
    Await("the connection to be kept", [&] { return server->kept() == std::min<int>(clients.size(), 3); });
  }
  AwaitReadable("the end of the oldest one", clients[0].get());
  EXPECT_TRUE(IsOver(clients[0]));
  for (const size_t other : {1, 2, 3}) EXPECT_FALSE(IsOver(clients[other]));
}

TEST_F(LookupServerTest, NoneIsKeptWhereThereIsNoRoom) {
  LookupOptions options = kPatient;
  options.max_kept_per_user = 0;
  const auto server = Start(options);
  const UniqueFd client = Begin(*server, kAlice);
  ASSERT_THAT(Ask(client, "", ""), IsOk());
  AwaitReadable("the end of the connection", client.get());
  EXPECT_TRUE(IsOver(client));
}

TEST_F(LookupServerTest, AQuestionOnAKeptConnectionCountsForItsUser) {
  const auto server = Start(kPatient);
  const UniqueFd kept = Begin(*server, kAlice);
  ASSERT_THAT(Ask(kept, "", ""), IsOk());
  Await("the connection to be kept", [&] { return server->kept() == 1; });
  std::vector<UniqueFd> clients;
  for (int i = 0; i < LookupServer::kMaxPerUser; ++i) clients.push_back(Begin(*server, kAlice));
  ASSERT_EQ(send(kept.get(), "x", 1, 0), 1);
  AwaitReadable("the end of the connection", kept.get());
  EXPECT_TRUE(IsOver(kept));
}

}  // namespace
}  // namespace kernix::server
