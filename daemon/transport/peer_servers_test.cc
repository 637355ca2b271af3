// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/peer_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/await.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/test_client.h"
#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using ::testing::HasSubstr;

constexpr UserId kAlice{70001};
constexpr UserId kBob{70002};

class PeerServersTest : public BackendFixture {
 protected:
  ~PeerServersTest() override { Release(); }

  // The client's end of a connection of `user`'s.
  UniqueFd Connect(UserId user) {
    auto [client, server] = Pair();
    servers_.Serve(std::move(server), user);
    return std::move(client);
  }

  static std::pair<UniqueFd, UniqueFd> Pair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }

  // Makes a call on a connection of `user`'s, and closes it.
  void Visit(UserId user) {
    EXPECT_THAT(TestClient(Connect(user)).Info(), IsOk()) << ToNumber(user);
    servers_.Left(user);
  }

  // The user database does not say who Alice is until Release().
  void Hold() {
    const MutexLock lock(mutex_);
    held_ = true;
  }
  void Release() {
    const MutexLock lock(mutex_);
    held_ = false;
    changed_.NotifyAll();
  }

  IdentityPtr Identify(UserId user) {
    const MutexLock lock(mutex_);
    while (held_ && user == kAlice) changed_.Wait(mutex_);
    ++identified_;
    return std::make_shared<TestIdentity>(ToNumber(user));
  }
  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> identified_ = 0;
  std::atomic<int> lookups_ = 0;
  PeerServers servers_{parts_.backend(),
                       PeerServers::Handler{.identify = [this](UserId user) { return Identify(user); },
                                            .route =
                                                [this](UniqueFd fd, const IdentityPtr& user) {
                                                  const bool is_lookup = user->id() == kBob;
                                                  if (is_lookup) ++lookups_;
                                                  return is_lookup ? UniqueFd() : std::move(fd);
                                                }}};
};

TEST_F(PeerServersTest, AUserWhomTheDatabaseDoesNotKnowYetHoldsNobodyUp) {
  Hold();
  TestClient alice(Connect(kAlice));
  const UniqueFd second = Connect(kAlice);
  Visit(UserId{3});
  const UniqueFd bob = Connect(kBob);
  Await("what needs no server", [&] { return lookups_ == 1; });
  EXPECT_EQ(identified_, 2);
  Release();
  EXPECT_THAT(alice.Info(), IsOk());
  EXPECT_EQ(identified_, 3) << "who a user is, is asked once";
}

TEST_F(PeerServersTest, ServersOfUsersWhoHaveLeftAreBounded) {
  const int users = 2 * static_cast<int>(PeerServers::kMaxIdle);
  TestClient stays(Connect(kAlice));
  ASSERT_THAT(stays.Info(), IsOk());
  for (int i = 0; i < users; ++i) Visit(UserId{static_cast<uint32_t>(i)});
  EXPECT_EQ(servers_.size(), PeerServers::kMaxIdle + 1);
  EXPECT_THAT(stays.Info(), IsOk());
  const int before = identified_;
  Visit(UserId{static_cast<uint32_t>(users - 1)});
  EXPECT_EQ(identified_, before) << "the last one's server is kept";
  Visit(UserId{0});
  EXPECT_EQ(identified_, before + 1) << "the first one's is made anew";
}

TEST_F(PeerServersTest, WhoComesBackIsNotIdle) {
  Visit(kAlice);
  TestClient alice(Connect(kAlice));
  ASSERT_THAT(alice.Info(), IsOk());
  for (uint32_t i = 0; i < 2 * PeerServers::kMaxIdle; ++i) Visit(UserId{i});
  EXPECT_THAT(alice.Info(), IsOk());
}

TEST_F(PeerServersTest, WhoLeavesAgainAndAgainCountsOnce) {
  Visit(kAlice);
  for (size_t i = 0; i < 3 * PeerServers::kMaxIdle; ++i) servers_.Left(kAlice);
  EXPECT_EQ(servers_.size(), 1u);
  const int before = identified_;
  Visit(kAlice);
  EXPECT_EQ(identified_, before);
}

TEST_F(PeerServersTest, ARefusedConnectionLearnsWhyAndLeavesNothing) {
  for (uint32_t i = 0; i < 2 * PeerServers::kMaxIdle; ++i) {
    auto [client, server] = Pair();
    servers_.Refuse(std::move(server), UserId{i}, absl::ResourceExhaustedError("no room"));
    EXPECT_THAT(TestClient(std::move(client)).Info(),
                HasError(absl::StatusCode::kResourceExhausted, HasSubstr("no room")));
  }
  Visit(kAlice);
  EXPECT_LE(servers_.size(), PeerServers::kMaxIdle + 1);
}

TEST_F(PeerServersTest, AfterShutdownConnectionsAreClosed) {
  Visit(kAlice);
  servers_.Shutdown(Duration{0});
  EXPECT_EQ(servers_.size(), 0u);
  const UniqueFd client = Connect(kAlice);
  char byte = 0;
  AwaitReadable("the end of a connection", client.get());
  EXPECT_EQ(recv(client.get(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace kernix::server
