// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "common/os/unique_fd.h"
#include "common/wire/quick_lookup.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

class FrameReaderTest : public testing::Test {
 protected:
  FrameReaderTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    sender_ = UniqueFd(ends[0]);
    receiver_ = UniqueFd(ends[1]);
  }

  void Send(std::string_view bytes) {
    ASSERT_EQ(send(sender_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  absl::StatusOr<bool> Read(FrameReader& reader) { return reader.ReadSome(receiver_.get()); }

  bool IsWhole(FrameReader& reader) {
    const absl::StatusOr<bool> whole = Read(reader);
    EXPECT_THAT(whole, IsOk());
    return whole.value_or(false);
  }

  UniqueFd sender_, receiver_;
};

TEST_F(FrameReaderTest, TakesAFrameByteForByte) {
  FrameReader reader(2, 100);
  const std::string bytes = "xy" + MakeFrame("payload");
  EXPECT_FALSE(reader.begun());
  for (size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_FALSE(IsWhole(reader));
    Send(bytes.substr(i, 1));
    ASSERT_EQ(IsWhole(reader), i + 1 == bytes.size()) << i;
    EXPECT_TRUE(reader.begun());
  }
  EXPECT_EQ(reader.Take(), "payload");
  EXPECT_FALSE(reader.begun());
}

TEST_F(FrameReaderTest, OnlyTheFirstHasAPrefix) {
  FrameReader reader(2, 100);
  Send("xy" + MakeFrame("one"));
  ASSERT_TRUE(IsWhole(reader));
  EXPECT_EQ(reader.Take(), "one");
  Send(MakeFrame(""));
  ASSERT_TRUE(IsWhole(reader));
  EXPECT_EQ(reader.Take(), "");
}

TEST_F(FrameReaderTest, ReadsLongFramesInPieces) {
  FrameReader reader(0, 1 << 20);
  const std::string text(100'000, 'x');
  Send(MakeFrame(text));
  ASSERT_FALSE(IsWhole(reader));
  ASSERT_TRUE(IsWhole(reader));
  EXPECT_EQ(reader.Take(), text);
}

TEST_F(FrameReaderTest, RefusesWhatIsTooLongOrComesTooEarly) {
  FrameReader limited(0, 3);
  Send(MakeFrame("long").substr(0, kFrameLengthBytes));
  EXPECT_TRUE(absl::IsResourceExhausted(Read(limited).status()));
  FrameReader reader(0, 3);
  Send(MakeFrame("one") + "x");
  EXPECT_TRUE(absl::IsInvalidArgument(Read(reader).status()));
}

TEST_F(FrameReaderTest, NoticesTheEnd) {
  FrameReader reader(0, 3);
  sender_.reset();
  EXPECT_TRUE(absl::IsUnavailable(Read(reader).status()));
}

}  // namespace
}  // namespace kernix
