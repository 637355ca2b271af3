// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/await.h"
#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A connection as the client and gRPC see it.
struct Ends {
  UniqueFd client;
  UniqueFd server;
};

std::string Receive(const UniqueFd& fd, size_t size) {
  std::string all;
  std::array<char, 65536> piece;
  while (all.size() < size) {
    AwaitReadable("bytes", fd.get());
    const ssize_t got = recv(fd.get(), piece.data(), std::min(piece.size(), size - all.size()), 0);
    if (got <= 0) break;
    all.append(piece.data(), got);
  }
  return all;
}

bool Ended(const UniqueFd& fd) {
  char byte = 0;
  AwaitReadable("an end", fd.get());
  return recv(fd.get(), &byte, 1, 0) <= 0;
}

void Send(const UniqueFd& fd, const std::string& text) {
  ASSERT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

// Writes until the socket has taken no more for a while.
size_t Fill(const UniqueFd& fd, const std::string& text) {
  size_t written = 0;
  for (int idle = 0; idle < 50;) {
    const ssize_t sent = send(fd.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    written += sent > 0 ? sent : 0;
    idle = sent > 0 ? 0 : idle + 1;
    if (sent < 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (written > size_t{64} << 20) break;
  }
  return written;
}

class RelayTest : public testing::Test {
 protected:
  Ends Connect(uid_t user = 1) {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    EXPECT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    UniqueFd server = relay_->Connect(UniqueFd(ends[1]), std::make_shared<TestIdentity>(user)).value();
    return {UniqueFd(ends[0]), std::move(server)};
  }

  std::unique_ptr<Relay> relay_ = Relay::Start().value();
};

TEST_F(RelayTest, PassesOnWhatBothSay) {
  const Ends ends = Connect();
  Send(ends.client, kPreface);
  EXPECT_EQ(Receive(ends.server, sizeof kPreface - 1), kPreface);
  Send(ends.server, "answer");
  EXPECT_EQ(Receive(ends.client, 6), "answer");
}

TEST_F(RelayTest, LosesNothingOfMuch) {
  const Ends ends = Connect();
  std::string text = kPreface;
  for (int i = 0; text.size() < 3'000'000; ++i) text += std::string("\0\0\1\0\0\0\0\0\1", 9) + static_cast<char>(i);
  std::thread writer([&] { Send(ends.client, text); });
  EXPECT_TRUE(Receive(ends.server, text.size()) == text);
  writer.join();
}

TEST_F(RelayTest, AClientThatGoesIsGoneForTheServer) {
  Ends ends = Connect();
  ends.client.reset();
  EXPECT_TRUE(Ended(ends.server));
}

TEST_F(RelayTest, TheLastWordsOfTheServerArrive) {
  Ends ends = Connect();
  Send(ends.server, std::string(100'000, 'x'));
  ends.server.reset();
  EXPECT_EQ(Receive(ends.client, 200'000).size(), 100'000u);
  EXPECT_TRUE(Ended(ends.client));
}

// The sockets hold some; the relay does not.
TEST_F(RelayTest, WhoDoesNotReadIsNotHeard) {
  const Ends ends = Connect();
  Fill(ends.server, std::string(10'000, 'x'));
  Send(ends.client, kPreface);
  pollfd heard{ends.server.get(), POLLIN, 0};
  EXPECT_EQ(poll(&heard, 1, 100), 0);
  std::thread reader([&] { Receive(ends.client, size_t{8} << 20); });
  AwaitReadable("the preface", ends.server.get());
  shutdown(ends.client.get(), SHUT_RDWR);
  reader.join();
}

TEST_F(RelayTest, AUserWhoAsksTooMuchWaitsAndOthersDoNot) {
  const Ends flood = Connect(1);
  const Ends other = Connect(2);
  // Twice as much as a user has in a second.
  std::string pings = kPreface;
  for (int i = 0; i < 8'000; ++i) pings += std::string("\0\0\0\6\0\0\0\0\0", 9);
  const auto begin = std::chrono::steady_clock::now();
  Send(flood.client, pings);
  Send(other.client, kPreface);
  EXPECT_EQ(Receive(other.server, sizeof kPreface - 1), kPreface);
  EXPECT_EQ(Receive(flood.server, pings.size()).size(), pings.size());
  EXPECT_GT(std::chrono::steady_clock::now() - begin, Duration{500});
}

TEST_F(RelayTest, ClosesAConnectionWithEndlessHeaders) {
  const Ends ends = Connect();
  std::string frames = kPreface;
  for (int i = 0; i < 3; ++i) frames += std::string("\0\x40\0\x09\0\0\0\0\1", 9) + std::string(16'384, 'x');
  Send(ends.client, frames);
  EXPECT_TRUE(Ended(ends.client));
}

TEST_F(RelayTest, StopsAtItsDeadline) {
  const Ends ends = Connect();
  Send(ends.client, kPreface);
  EXPECT_EQ(Receive(ends.server, sizeof kPreface - 1), kPreface);
  relay_->Stop(std::chrono::steady_clock::now() + Duration{50});
  EXPECT_TRUE(Ended(ends.client));
  EXPECT_TRUE(Ended(ends.server));
}

}  // namespace
}  // namespace kernix::server
