// SPDX-License-Identifier: Apache-2.0
#include "common/wire/quick_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/os/unique_fd.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

std::string MakeFrame(const std::string& payload) { return EncodeFrameLength(payload.size()) + payload; }

v1::LoadRequest Request() {
  v1::LoadRequest load;
  load.set_name("module");
  load.set_language(v1::LANGUAGE_CUDA);
  load.add_source()->set_text("text");
  load.mutable_toolchain()->set_nvcc("/usr/bin/nvcc");
  load.set_verbose(true);
  load.set_batch(true);
  load.set_only_cached(true);
  return load;
}

TEST(LookupTest, HoldsTheWholeRequest) {
  const std::optional<v1::LoadRequest> load = LoadOf(LookupOf(Request()));
  ASSERT_TRUE(load);
  EXPECT_EQ(load->SerializeAsString(), Request().SerializeAsString());
}

TEST(LookupTest, ItsBytesAreThoseOfWhatIsBuilt) {
  v1::LoadRequest same = Request();
  same.set_name("another");
  same.set_batch(false);
  same.set_only_cached(false);
  same.set_frozen(true);
  same.mutable_toolchain()->set_nvcc("/opt/nvcc");
  EXPECT_EQ(LookupOf(same).load(), LookupOf(Request()).load());
  v1::LoadRequest other = Request();
  other.mutable_source(0)->set_text("texts");
  EXPECT_NE(LookupOf(other).load(), LookupOf(Request()).load());
}

TEST(LookupTest, OtherBytesAreNoRequest) {
  v1::LookupRequest lookup = LookupOf(Request());
  lookup.set_load("\xff");
  EXPECT_FALSE(LoadOf(lookup));
}

class QuickLookupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    here_.reset(fds[0]);
    there_.reset(fds[1]);
  }

  UniqueFd here_, there_;
  const MonotonicTime later_ = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const MonotonicTime past_ = std::chrono::steady_clock::now();
};

TEST_F(QuickLookupTest, AFrameOfAnySizeComesThrough) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{300}, size_t{3} << 20}) {
    const std::string text(size, 'x');
    std::thread sender([&] { EXPECT_TRUE(SendFrame(here_.get(), "magic", text, later_).ok()); });
    std::string magic(5, '\0');
    EXPECT_EQ(recv(there_.get(), magic.data(), magic.size(), MSG_WAITALL), 5);
    EXPECT_EQ(magic, "magic");
    EXPECT_EQ(ReceiveFrame(there_.get(), size, later_).value(), text);
    sender.join();
  }
}

TEST_F(QuickLookupTest, TooLongAFrameIsRefusedBeforeItIsRead) {
  ASSERT_TRUE(SendFrame(here_.get(), "", "four", later_).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ReceiveFrame(there_.get(), 3, later_).status()));
}

TEST_F(QuickLookupTest, SilenceAndAnEarlyEndAreErrors) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReceiveFrame(there_.get(), 10, past_).status()));
  ASSERT_EQ(send(here_.get(), "\x04\0\0\0ab", 6, 0), 6);
  here_.reset();
  EXPECT_TRUE(absl::IsUnavailable(ReceiveFrame(there_.get(), 10, later_).status()));
  EXPECT_TRUE(absl::IsUnavailable(SendFrame(there_.get(), "", "x", later_)));
}

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
