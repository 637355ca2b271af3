// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/progress_line.h"

#include <gtest/gtest.h>

#include <sstream>

namespace kernix::ctl {
namespace {

using std::chrono::milliseconds;

class ProgressLineTest : public testing::Test {
 protected:
  // The output since the last call.
  std::string Take() {
    std::string text = out_.str();
    out_.str("");
    return text;
  }

  std::ostringstream out_;
  std::chrono::steady_clock::time_point now_{};
  const ProgressLine::Clock clock_ = [this] { return now_; };
};

TEST_F(ProgressLineTest, AppearsAfterASecondAndGoesAtTheEnd) {
  {
    ProgressLine line("a.cu", out_, /*terminal=*/true, clock_);
    line.SetState("queued (3 ahead)");
    now_ += milliseconds(999);
    line.Poll();
    EXPECT_EQ(Take(), "");
    now_ += milliseconds(1);
    line.Poll();
    EXPECT_EQ(Take(), "\r\x1b[Kkernixctl: a.cu: queued (3 ahead), 1 s");
    line.Poll();
    EXPECT_EQ(Take(), "");  // nothing new
    line.SetState("compile (1/2)");
    line.Poll();
    EXPECT_EQ(Take(), "\r\x1b[Kkernixctl: a.cu: compile (1/2), 1 s");
  }
  EXPECT_EQ(Take(), "\r\x1b[K");
}

TEST_F(ProgressLineTest, MakesRoomAndComesBack) {
  ProgressLine line("a.cu", out_, /*terminal=*/true, clock_);
  line.Erase();
  EXPECT_EQ(Take(), "");
  now_ += milliseconds(2500);
  line.Poll();
  line.Erase();
  EXPECT_EQ(Take(), "\r\x1b[Kkernixctl: a.cu: connecting, 2 s\r\x1b[K");
  line.Poll();
  EXPECT_EQ(Take(), "\r\x1b[Kkernixctl: a.cu: connecting, 2 s");
}

TEST_F(ProgressLineTest, IsForTerminals) {
  ProgressLine line("a.cu", out_, /*terminal=*/false, clock_);
  now_ += milliseconds(5000);
  line.Poll();
  line.Erase();
  EXPECT_EQ(Take(), "");
}

}  // namespace

}  // namespace kernix::ctl
