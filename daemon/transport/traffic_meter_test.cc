// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/traffic_meter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace kernix::server
