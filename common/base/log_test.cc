// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace kernix {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(LogTest, LinesAreLogfmt) {
  EXPECT_EQ(FormatLogLine(LogLevel::kInfo, "ready", {{"pid", 42}, {"socket", "/run/k.sock"}}),
            "info ready pid=42 socket=/run/k.sock\n");
  EXPECT_EQ(FormatLogLine(LogLevel::kError, "stopped", {}), "error stopped\n");
}

TEST(LogTest, TakesTextOfAnyType) {
  const std::string text = "a";
  const std::string_view view = text;
  EXPECT_EQ(FormatLogLine(LogLevel::kDebug, "e", {{"s", text}, {"v", view}, {"d", 1.5}, {"b", true}}),
            "debug e s=a v=a d=1.5 b=1\n");
}

TEST(LogTest, AnEventIsOneLineWhateverItsValues) {
  EXPECT_EQ(FormatLogLine(LogLevel::kWarning, "bad thing", {{"a", "x y"}, {"b", "say \"no\"\n\t\x01"}, {"c", ""}}),
            "warning \"bad thing\" a=\"x y\" b=\"say \\\"no\\\"\\n\\t\\x01\" c=\"\"\n");
  EXPECT_EQ(FormatLogLine(LogLevel::kInfo, "e", {{"k", "a=b"}, {"p", "c\\d"}}), "info e k=\"a=b\" p=\"c\\\\d\"\n");
}

TEST(LogTest, NothingInAValueActsOnATerminal) {
  EXPECT_EQ(FormatLogLine(LogLevel::kInfo, "e", {{"a", "\xC2\x9B"}, {"b", "x\u202Ey"}, {"c", "\x9B"}, {"d", "\u00e9"}}),
            "info e a=\"\\u009b\" b=\"x\\u202ey\" c=\"\\x9b\" d=\u00e9\n");
}

TEST(LogTest, OfALongValueTheBeginningIsWritten) {
  const std::string line = FormatLogLine(LogLevel::kInfo, "e", {{"k", std::string(1 << 20, 'x')}, {"n", 1}});
  EXPECT_EQ(line, "info e k=" + std::string(4096, 'x') + "...(1048576 bytes) n=1\n");
}

TEST(LogTest, ParsesLevels) {
  LogLevel level = LogLevel::kInfo;
  EXPECT_TRUE(ParseLogLevel("debug", level));
  EXPECT_EQ(level, LogLevel::kDebug);
  EXPECT_TRUE(ParseLogLevel("error", level));
  EXPECT_EQ(level, LogLevel::kError);
  EXPECT_FALSE(ParseLogLevel("loud", level));
  EXPECT_EQ(level, LogLevel::kError);
}

TEST(LogTest, WritesToStderrFromTheLevelOn) {
  testing::internal::CaptureStderr();
  SetLogLevel(LogLevel::kWarning);
  Log(LogLevel::kInfo, "quiet");
  Log(LogLevel::kWarning, "loud", {{"n", 1}});
  SetLogLevel(LogLevel::kInfo);
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find("quiet"), std::string::npos);
  EXPECT_TRUE(written.ends_with("Z warning loud n=1\n")) << written;
  EXPECT_EQ(written.find('T'), 10u) << written;  // 2026-01-02T...
}

// stderr, until the end of the test.
class StderrInAPipe {
 public:
  StderrInAPipe() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_), 0);
    EXPECT_EQ(fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
    EXPECT_GE(dup2(ends_[1], STDERR_FILENO), 0);
  }
  ~StderrInAPipe() {
    dup2(before_, STDERR_FILENO);
    for (const int fd : {before_, ends_[0], ends_[1]}) close(fd);
  }

  std::string Read() const {
    std::string text(1 << 20, '\0');
    const ssize_t count = read(ends_[0], text.data(), text.size());
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return text;
  }

 private:
  const int before_;
  int ends_[2] = {-1, -1};
};

TEST(LogTest, NobodyWaitsForWhoeverReadsStderr) {
  const StderrInAPipe pipe;
  for (int i = 0; i < 10'000; ++i) Log(LogLevel::kInfo, "line", {{"n", i}});  // a pipe has 64 KiB
  const std::string first = pipe.Read();
  EXPECT_NE(first.find("line n=0\n"), std::string::npos);
  EXPECT_EQ(first.find("line n=9999\n"), std::string::npos);
  Log(LogLevel::kInfo, "later");
  const std::string next = pipe.Read();
  const auto lines = std::count(first.begin(), first.end(), '\n');
  EXPECT_NE(next.find(StrCat("warning lines_lost lines=", 10'000 - lines, "\n")), std::string::npos) << next;
  EXPECT_TRUE(next.ends_with("info later\n")) << next;
}

TEST(LogTest, ALineThatIsCutEndsBeforeTheNextOne) {
  const StderrInAPipe pipe;
  for (int i = 0; i < 100; ++i)
    Log(LogLevel::kInfo, "e", {{"a", std::string(4000, 'x')}, {"b", std::string(3000, 'y')}});
  pipe.Read();
  Log(LogLevel::kInfo, "later");
  const std::string next = pipe.Read();
  const size_t tale = next.find("Z warning lines_lost lines=");
  ASSERT_NE(tale, std::string::npos) << next;
  EXPECT_TRUE(next.substr(0, tale).rfind('\n') != std::string::npos || next.find("20") == 0) << next;
  EXPECT_TRUE(next.ends_with("info later\n")) << next;
}

TEST(LogTest, AWatcherHearsOfWhatIsWritten) {
  const StderrInAPipe pipe;
  size_t bytes = 0;
  SetLogWatcher([&](size_t more) { bytes += more; });
  Log(LogLevel::kInfo, "one");
  Log(LogLevel::kInfo, "two");
  SetLogWatcher(nullptr);
  Log(LogLevel::kInfo, "three");
  const std::string written = pipe.Read();
  EXPECT_EQ(bytes, written.find("two\n") + 4);
}

class LogBudgetTest : public ::testing::Test {
 protected:
  bool Write(std::string_view account, uint64_t bytes) { return budget_.Ask(account, bytes, now_).write; }

  LogBudget budget_{100, seconds(60)};
  LogBudget::Time now_ = LogBudget::Time() + std::chrono::hours(1);
};

TEST_F(LogBudgetTest, AnAccountHasSoManyBytesInAWindow) {
  EXPECT_TRUE(Write("a", 60));
  EXPECT_TRUE(Write("a", 60));  // one line may go beyond
  EXPECT_FALSE(Write("a", 1));
  now_ += seconds(59);
  EXPECT_FALSE(Write("a", 1));
  now_ += seconds(1);
  EXPECT_TRUE(Write("a", 1));
}

TEST_F(LogBudgetTest, NoAccountTakesFromAnother) {
  EXPECT_TRUE(Write("a", 1000));
  EXPECT_FALSE(Write("a", 1));
  EXPECT_TRUE(Write("b", 1));
}

TEST_F(LogBudgetTest, WhatIsLeftOutIsToldOnceByTheNextLine) {
  Write("a", 1000);
  for (int i = 0; i < 3; ++i) Write("a", 1);
  now_ += seconds(60);
  EXPECT_EQ(budget_.Ask("a", 1, now_).left_out, 3u);
  EXPECT_EQ(budget_.Ask("a", 1, now_).left_out, 0u);
}

TEST_F(LogBudgetTest, WhatIsLeftOutOfTheSilentIsToldWhenTheWindowIsOver) {
  Write("a", 1000);
  for (int i = 0; i < 3; ++i) Write("a", 1);
  Write("b", 1);
  EXPECT_THAT(budget_.Settle(now_), IsEmpty());
  EXPECT_FALSE(Write("a", 1));
  now_ += seconds(60);
  EXPECT_THAT(budget_.Settle(now_), ElementsAre(Pair("a", 4)));
  EXPECT_THAT(budget_.Settle(now_), IsEmpty());
  EXPECT_TRUE(Write("a", 1));
}

}  // namespace
}  // namespace kernix
