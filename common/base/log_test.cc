// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

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

}  // namespace
}  // namespace kernix
