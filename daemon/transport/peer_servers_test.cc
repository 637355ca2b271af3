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

#include "common/wire/quick_lookup.h"
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

// Alice may be somebody whom the user database does not say anything of, until Release().
class SlowDatabase : public Callers {
 public:
  SlowDatabase() : Callers(Env::Posix(), {.shared = true}) {}

  IdentityPtr Identify(UserId user) override {
    const MutexLock lock(mutex_);
    while (held_ && user == kAlice) changed_.Wait(mutex_);
    ++asked_;
    return std::make_shared<TestIdentity>(ToNumber(user));
  }

  void Hold() {
    const MutexLock lock(mutex_);
    held_ = true;
  }
  void Release() {
    const MutexLock lock(mutex_);
    held_ = false;
    changed_.NotifyAll();
  }

  int asked() const { return asked_; }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> asked_ = 0;
};

class PeerServersTest : public BackendFixture {
 protected:
  ~PeerServersTest() override { database_.Release(); }

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

  SlowDatabase database_;
  const std::unique_ptr<LookupServer> lookups_ = LookupServer::Start(parts_.backend()).value();
  PeerServers servers_{parts_.backend(), database_, *lookups_, /*relay=*/nullptr};
};

TEST_F(PeerServersTest, AUserWhomTheDatabaseDoesNotKnowYetHoldsNobodyUp) {
  database_.Hold();
  TestClient alice(Connect(kAlice));
  const UniqueFd second = Connect(kAlice);
  Visit(UserId{3});
  auto [bob, bobs] = Pair();
  ASSERT_THAT(SendFrame(bob.get(), kLookupMagic, "no question", MonotonicTime::max()), IsOk());
  servers_.Serve(std::move(bobs), kBob);
  Await("what needs no server", [&] { return lookups_->asked() == 1; });
  EXPECT_EQ(database_.asked(), 2);
  database_.Release();
  EXPECT_THAT(alice.Info(), IsOk());
  EXPECT_EQ(database_.asked(), 3) << "who a user is, is asked once";
}

TEST_F(PeerServersTest, ServersOfUsersWhoHaveLeftAreBounded) {
  const int users = 2 * static_cast<int>(PeerServers::kMaxIdle);
  TestClient stays(Connect(kAlice));
  ASSERT_THAT(stays.Info(), IsOk());
  for (int i = 0; i < users; ++i) Visit(UserId{static_cast<uint32_t>(i)});
  EXPECT_EQ(servers_.size(), PeerServers::kMaxIdle + 1);
  EXPECT_THAT(stays.Info(), IsOk());
  const int before = database_.asked();
  Visit(UserId{static_cast<uint32_t>(users - 1)});
  EXPECT_EQ(database_.asked(), before) << "the last one's server is kept";
  Visit(UserId{0});
  EXPECT_EQ(database_.asked(), before + 1) << "the first one's is made anew";
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
  const int before = database_.asked();
  Visit(kAlice);
  EXPECT_EQ(database_.asked(), before);
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
