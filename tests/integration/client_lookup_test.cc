// SPDX-License-Identifier: Apache-2.0
//
// Which loads need gRPC: seen by a relay between client and daemon.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "client/connection/daemon_client.h"
#include "common/base/mutex.h"
#include "common/os/unique_fd.h"
#include "common/wire/quick_lookup.h"
#include "tests/integration/client_world.h"
#include "tests/support/bound_socket.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr std::string_view kHttp2 = "PRI * HT";  // how a gRPC client begins

enum class Lookups { kRelayed, kClosed, kCutShort, kAnsweredByNonsense, kLeftUnanswered };

// Listens at `path`, passes what comes on to the daemon at `target`, and notes how each connection begins.
class Relay {
 public:
  Relay(const std::string& path, std::string target, Lookups lookups)
      : target_(std::move(target)), lookups_(lookups), listener_(BoundSocket(path)), stop_(eventfd(0, EFD_CLOEXEC)) {
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~Relay() {
    eventfd_write(stop_.get(), 1);
    acceptor_.join();
    for (std::thread& thread : connections_) thread.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  std::vector<std::string> TakeBeginnings() {
    const MutexLock lock(mutex_);
    return std::exchange(beginnings_, {});
  }

  size_t beginnings() {
    const MutexLock lock(mutex_);
    return beginnings_.size();
  }

  // Whether a request has come that stays unanswered: more than the beginning, which clients send ahead.
  bool is_asked() const { return is_asked_; }

  // How many clients have gone before their lookups were answered.
  int given_up() const { return given_up_; }

 private:
  // False when the relay stops first.
  bool AwaitReadable(int fd, int other = -1) {
    std::array<pollfd, 3> fds = {pollfd{stop_.get(), POLLIN, 0}, pollfd{fd, POLLIN, 0}, pollfd{other, POLLIN, 0}};
    return poll(fds.data(), fds.size(), -1) > 0 && fds[0].revents == 0;
  }

  void Accept() {
    while (AwaitReadable(listener_.get())) {
      connections_.emplace_back(
          [this, fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)] { Serve(UniqueFd(fd)); });
    }
  }

  void Serve(UniqueFd client) {
    std::array<char, kHttp2.size()> first{};
    if (recv(client.get(), first.data(), first.size(), MSG_WAITALL) != static_cast<ssize_t>(first.size())) return;
    const std::string beginning(first.data(), first.size());
    {
      const MutexLock lock(mutex_);
      beginnings_.push_back(beginning);
    }
    if (beginning == kLookupMagic && lookups_ != Lookups::kRelayed) return Misbehave(client.get());
    UniqueFd daemon(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress address(target_);
    EXPECT_EQ(connect(daemon.get(), address.get(), address.size()), 0);
    EXPECT_EQ(send(daemon.get(), beginning.data(), beginning.size(), MSG_NOSIGNAL), 8);
    while (AwaitReadable(client.get(), daemon.get()) && Pass(client.get(), daemon.get()) &&
           Pass(daemon.get(), client.get())) {
    }
  }

  void Misbehave(int client) {
    if (lookups_ == Lookups::kClosed) return;
    if (lookups_ == Lookups::kCutShort) send(client, "\x02\0\0\0\xff", 5, MSG_NOSIGNAL);
    if (lookups_ == Lookups::kCutShort) return;
    if (lookups_ == Lookups::kAnsweredByNonsense) send(client, "\x01\0\0\0\xff", 5, MSG_NOSIGNAL);
    std::array<char, 4096> unread;
    while (AwaitReadable(client)) {
      if (recv(client, unread.data(), unread.size(), 0) <= 0) {
        ++given_up_;
        return;
      }
      is_asked_ = true;
    }
  }

  // What there is. False at the end.
  static bool Pass(int from, int to) {
    std::array<char, 65536> bytes;
    const ssize_t count = recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN;
    return count > 0 && send(to, bytes.data(), static_cast<size_t>(count), MSG_NOSIGNAL) == count;
  }

  const std::string target_;
  const Lookups lookups_;
  UniqueFd listener_, stop_;
  std::thread acceptor_;
  std::vector<std::thread> connections_;  // the acceptor's, until that has ended
  std::atomic<bool> is_asked_{false};
  std::atomic<int> given_up_{0};
  Mutex mutex_;
  std::vector<std::string> beginnings_ ABSL_GUARDED_BY(mutex_);
};

class ClientLookupTest : public ClientWorld {
 protected:
  static constexpr std::chrono::milliseconds kLong = std::chrono::minutes(2);
  static constexpr std::chrono::milliseconds kShort{20};

  ClientLookupTest() { EXPECT_TRUE(direct_->Info().ok()); }

  // That gives up a lookup after `patience`.
  static std::unique_ptr<Client> ClientOf(const std::string& socket, std::chrono::milliseconds patience) {
    ClientEnvironment environment;
    environment.lookup_patience = patience;
    ClientOptions options;
    options.start_timeout = kLong;
    options.address = "unix:" + socket;
    return DaemonClient::Create(environment, options).value();
  }

  const std::string socket_ = Path("relay");
  const std::unique_ptr<DaemonClient> direct_ = MakeClient();
};

TEST_F(ClientLookupTest, AHitNeedsNoGrpcAndAMissDoes) {
  Relay relay(socket_, RunFolderOfStore().socket, Lookups::kRelayed);
  const auto client = ClientOf(socket_, kLong);
  auto module = LoadKernel(*client, 1);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_FALSE((*module)->cache_hit());
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre(kLookupMagic, kHttp2));

  module = LoadKernel(*client, 1);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_TRUE((*module)->cache_hit());
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre()) << "the connection of the first lookup was kept";
  EXPECT_EQ(direct_->Stats()->hits(), 1u);
  EXPECT_EQ(direct_->Stats()->misses(), 1u);
}

TEST_F(ClientLookupTest, AKeptConnectionThatIsLostIsMadeAgain) {
  ASSERT_TRUE(LoadKernel(*direct_, 1).ok());
  std::unique_ptr<Client> client;
  {
    Relay relay(socket_, RunFolderOfStore().socket, Lookups::kRelayed);
    client = ClientOf(socket_, kLong);
    ASSERT_TRUE(LoadKernel(*client, 1).ok());
    EXPECT_THAT(relay.TakeBeginnings(), ElementsAre(kLookupMagic));
  }
  ASSERT_EQ(unlink(socket_.c_str()), 0);
  Relay relay(socket_, RunFolderOfStore().socket, Lookups::kRelayed);
  ASSERT_TRUE(LoadKernel(*client, 1).ok());
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre(kLookupMagic));
}

TEST_F(ClientLookupTest, AChildHasAConnectionOfItsOwn) {
  ASSERT_TRUE(LoadKernel(*direct_, 1).ok());
  Relay relay(socket_, RunFolderOfStore().socket, Lookups::kRelayed);
  const auto client = ClientOf(socket_, kLong);
  ASSERT_TRUE(LoadKernel(*client, 1).ok());
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre(kLookupMagic));
  EXPECT_EQ(ForkAndRun([&] { return LoadKernel(*client, 1).ok() ? 0 : 1; }), 0);
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre(kLookupMagic)) << "the child's";
  ASSERT_TRUE(LoadKernel(*client, 1).ok());
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre()) << "the parent's is still good";
}

TEST_F(ClientLookupTest, WhatHasToBeToldOrBuiltIsNotLookedUp) {
  Relay relay(socket_, RunFolderOfStore().socket, Lookups::kRelayed);
  const auto client = ClientOf(socket_, kLong);
  LoadOptions verbose, forced;
  verbose.verbose = true;
  forced.force_rebuild = true;
  ASSERT_TRUE(LoadKernel(*client, 1, verbose).ok());
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre(kHttp2));
  ASSERT_TRUE(LoadKernel(*client, 1, forced).ok());
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre(kHttp2));
  EXPECT_EQ(direct_->Stats()->builds(), 2u);
}

TEST_F(ClientLookupTest, ADaemonThatDoesNotAnswerLookupsServesAllTheSame) {
  ASSERT_TRUE(LoadKernel(*direct_, 1).ok());
  for (const Lookups lookups :
       {Lookups::kClosed, Lookups::kCutShort, Lookups::kAnsweredByNonsense, Lookups::kLeftUnanswered}) {
    const std::chrono::milliseconds patience = lookups == Lookups::kLeftUnanswered ? kShort : kLong;
    const std::string socket = socket_ + std::to_string(static_cast<int>(lookups));
    Relay relay(socket, RunFolderOfStore().socket, lookups);
    const auto module = LoadKernel(*ClientOf(socket, patience), 1);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_TRUE((*module)->cache_hit());
    // A connection that ends may be one that was made before the request was ready: it is made again, once.
    const bool ends = lookups == Lookups::kClosed || lookups == Lookups::kCutShort;
    std::vector<std::string> beginnings = relay.TakeBeginnings();
    if (ends && beginnings.size() == 3) beginnings.erase(beginnings.begin());
    EXPECT_THAT(beginnings, UnorderedElementsAre(kLookupMagic, kHttp2));
  }
}

// The client connects before it knows whether there will be a request.
TEST_F(ClientLookupTest, ALoadThatIsNotAskedForLeavesItsConnectionToTheNextOne) {
  ASSERT_TRUE(LoadKernel(*direct_, 1).ok());
  Relay relay(socket_, RunFolderOfStore().socket, Lookups::kRelayed);
  const auto client = ClientOf(socket_, kLong);
  LoadOptions wrong;
  wrong.environment = {"KERNIX_POLICY=perhaps"};
  EXPECT_FALSE(LoadKernel(*client, 1, wrong).ok());
  EXPECT_TRUE(Eventually([&] { return relay.beginnings() == 1; }));
  const auto module = LoadKernel(*client, 1);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_TRUE((*module)->cache_hit());
  EXPECT_THAT(relay.TakeBeginnings(), ElementsAre(kLookupMagic));
}

// Its connection ends when the parent gives it up, though the child has the descriptor, too.
TEST_F(ClientLookupTest, AForkDuringALookup) {
  ASSERT_TRUE(LoadKernel(*direct_, 1).ok());
  Relay relay(socket_, RunFolderOfStore().socket, Lookups::kLeftUnanswered);
  const auto client = ClientOf(socket_, std::chrono::seconds(1));
  std::thread load([&] { EXPECT_TRUE(LoadKernel(*client, 1).ok()); });
  EXPECT_TRUE(Eventually([&] { return relay.is_asked(); }));

  int go[2];
  ASSERT_EQ(pipe(go), 0);
  std::thread parent([&] {
    EXPECT_TRUE(Eventually([&] { return relay.given_up() == 1; })) << "while the child lives";
    close(go[1]);
  });
  EXPECT_EQ(ForkAndRun([&] {
              close(go[1]);
              char byte = 0;
              return read(go[0], &byte, 1) == 0 && LoadKernel(*direct_, 1).ok() ? 0 : 1;
            }),
            0);
  parent.join();
  load.join();
  close(go[0]);
}

}  // namespace
}  // namespace kernix
