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
#include <vector>

#include "tests/support/await.h"
#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint8_t kEnd = 1;  // of a stream

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, size_t length = 0) {
  const auto byte = [](size_t value) { return static_cast<char>(value & 0xff); };
  return std::string{byte(length >> 16),      byte(length >> 8), byte(length),
                     static_cast<char>(type), byte(flags),       byte(stream >> 24),
                     byte(stream >> 16),      byte(stream >> 8), byte(stream)} +
         std::string(length, 'x');
}

TEST(FrameReaderTest, FindsHeadsInPiecesOfAnySize) {
  const std::string text =
      kPreface + Frame(FrameType::kHeaders, kEnd, 0x81020304, 300) + Frame(FrameType::kPing, 0, 0) + "\1\0";
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100}, text.size()}) {
    FrameReader reader(sizeof kPreface - 1);
    std::vector<FrameHead> heads;
    for (size_t at = 0; at < text.size(); at += piece) {
      reader.Read(std::string_view(text).substr(at, piece), [&](const FrameHead& head) { heads.push_back(head); });
    }
    ASSERT_EQ(heads.size(), 2u) << piece;
    EXPECT_EQ(heads[0].type, FrameType::kHeaders);
    EXPECT_EQ(heads[0].length, 300u);
    EXPECT_EQ(heads[0].stream, 0x01020304u) << "without the reserved bit";
    EXPECT_TRUE(heads[0].ends_stream());
    EXPECT_EQ(heads[1].type, FrameType::kPing);
    EXPECT_FALSE(heads[1].ends_stream());
  }
}

class TrafficMeterTest : public testing::Test {
 protected:
  TrafficMeterTest() { Hear(kPreface); }

  // Whether the connection may go on.
  bool Hear(const std::string& bytes) { return meter_->FromClient(bytes).ok(); }
  void Open(uint32_t stream) { EXPECT_TRUE(Hear(Frame(FrameType::kHeaders, 0, stream))); }
  bool MustWait() { return user_.Wait(now_) > Duration{0}; }

  MonotonicTime now_ = std::chrono::steady_clock::now();
  UserTraffic user_{now_};
  std::unique_ptr<TrafficMeter> meter_ = std::make_unique<TrafficMeter>(user_);
};

TEST_F(TrafficMeterTest, CountsCallsUntilKernixdEndsThem) {
  Open(1);
  Open(3);
  Open(3);  // the end of its headers, of a client that has some to say
  EXPECT_EQ(user_.calls, 2);
  meter_->FromServer(Frame(FrameType::kHeaders, 0, 1) + Frame(FrameType::kData, 0, 1, 5));
  EXPECT_EQ(user_.calls, 2);
  meter_->FromServer(Frame(FrameType::kHeaders, kEnd, 1) + Frame(FrameType::kReset, 0, 1, 4));
  EXPECT_EQ(user_.calls, 1);
  EXPECT_TRUE(Hear(Frame(FrameType::kReset, 0, 3, 4)));
  EXPECT_EQ(user_.calls, 0);
}

TEST_F(TrafficMeterTest, ManyCallsThatKernixdEndsMayFollowOneAnother) {
  for (uint32_t stream = 1; stream < 20'000; stream += 2) {
    Open(stream);
    EXPECT_TRUE(Hear(Frame(FrameType::kData, kEnd, stream, 5)));
    meter_->FromServer(Frame(FrameType::kHeaders, kEnd, stream));
  }
  EXPECT_FALSE(MustWait());
}

// Returns how many calls the user may abandon before it must wait.
template <typename Abandon>
int Allowed(UserTraffic& user, MonotonicTime now, const Abandon& abandon) {
  int calls = 0;
  for (; user.Wait(now) == Duration{0}; ++calls) abandon(1 + 2 * calls);
  return calls;
}

TEST_F(TrafficMeterTest, FewCallsMayBeAbandoned) {
  const int reset_by_client = Allowed(user_, now_, [this](uint32_t stream) {
    Open(stream);
    Hear(Frame(FrameType::kReset, 0, stream, 4));
  });
  EXPECT_GT(reset_by_client, 400);
  EXPECT_LE(reset_by_client, 500);
  EXPECT_EQ(user_.calls, 0);
  now_ += Duration{1'000};
  meter_ = std::make_unique<TrafficMeter>(user_);
  Hear(kPreface);
  const int reset_by_kernixd = Allowed(user_, now_, [this](uint32_t stream) {
    Open(stream);
    meter_->FromServer(Frame(FrameType::kReset, 0, stream, 4));
  });
  EXPECT_GT(reset_by_kernixd, 400);
  EXPECT_LE(reset_by_kernixd, 500);
}

TEST_F(TrafficMeterTest, ACloseAbandonsAllCalls) {
  for (uint32_t stream = 1; stream < 1200; stream += 2) Open(stream);
  EXPECT_FALSE(MustWait());
  meter_.reset();
  EXPECT_EQ(user_.calls, 0);
  EXPECT_TRUE(MustWait());
}

TEST_F(TrafficMeterTest, WhoWaitsLongEnoughMayGoOn) {
  user_.Spend(2 * UserTraffic::kPerSecond);
  const Duration wait = user_.Wait(now_);
  EXPECT_GT(wait, Duration{900});
  EXPECT_LE(wait, Duration{1'100});
  now_ += wait;
  EXPECT_FALSE(MustWait());
  now_ += Duration{60'000};  // which is not saved up
  EXPECT_FALSE(MustWait());
  user_.Spend(2 * UserTraffic::kPerSecond);
  EXPECT_TRUE(MustWait());
}

TEST_F(TrafficMeterTest, PingsCostMoreThanTheirAnswers) {
  for (int i = 0; i < 5'000; ++i) Hear(Frame(FrameType::kPing, 1, 0, 8));
  EXPECT_FALSE(MustWait());
  for (int i = 0; i < 5'000; ++i) Hear(Frame(FrameType::kPing, 0, 0, 8));
  EXPECT_TRUE(MustWait());
}

TEST_F(TrafficMeterTest, HeadersOfACallHaveALimit) {
  Open(1);
  bool goes_on = true;
  int frames = 0;
  for (; goes_on && frames < 100; ++frames) goes_on = Hear(Frame(FrameType::kContinuation, 0, 1, 1 << 10));
  EXPECT_EQ(frames, 33);
}

TEST_F(TrafficMeterTest, HeadersOfManyCallsDoNotAddUp) {
  for (uint32_t stream = 1; stream < 200; stream += 2) {
    EXPECT_TRUE(Hear(Frame(FrameType::kHeaders, 0, stream, 8 << 10)));
  }
}

TEST_F(TrafficMeterTest, CallsAtOnceHaveALimitForAllConnections) {
  TrafficMeter other(user_);
  EXPECT_THAT(other.FromClient(kPreface), IsOk());
  uint32_t stream = 1;
  for (int i = 0; i < UserTraffic::kMaxCalls; ++i, stream += 2) Open(stream);
  EXPECT_FALSE(other.FromClient(Frame(FrameType::kHeaders, 0, 1)).ok());
  EXPECT_TRUE(other.FromClient(Frame(FrameType::kReset, 0, 1, 4)).ok());
}

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

  std::unique_ptr<Relay> relay_ = Relay::Start(Env::Posix()).value();
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
