// SPDX-License-Identifier: Apache-2.0
#include "common/wire/quick_lookup.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "common/os/unique_fd.h"

namespace kernix {
namespace {

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

}  // namespace
}  // namespace kernix
