// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/format.h"

#include <gtest/gtest.h>

#include "kernix/v1/kernix.pb.h"

namespace kernix::ctl {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(FormatTest, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(10ull << 30), "10.0 GiB");
  EXPECT_EQ(FormatBytes(5000ull << 40), "5000.0 TiB");
}

TEST(FormatTest, Durations) {
  EXPECT_EQ(FormatDuration(milliseconds(1999)), "1999 ms");
  EXPECT_EQ(FormatDuration(seconds(119)), "119 s");
  EXPECT_EQ(FormatDuration(minutes(2)), "2 min");
  EXPECT_EQ(FormatDuration(hours(47)), "47 h");
  EXPECT_EQ(FormatDuration(hours(72)), "3 d");
}

TEST(FormatTest, Ages) {
  EXPECT_EQ(ParseAge("90s").value(), seconds(90));
  EXPECT_EQ(ParseAge("10m").value(), minutes(10));
  EXPECT_EQ(ParseAge("2h").value(), hours(2));
  EXPECT_EQ(ParseAge("7d").value(), hours(168));
  for (const char* text : {"", "d", "7", "7w", "0d", "-1d", "1.5h", "99999999999999999d"}) {
    EXPECT_FALSE(ParseAge(text).ok()) << text;
  }
}

TEST(FormatTest, Tables) { EXPECT_EQ(FormatTable({{"a", "bb"}, {"ccc", "d"}}), "a    bb\nccc  d\n"); }

TEST(FormatTest, NamesOfOthersDoNotActOnTheTerminal) {
  EXPECT_EQ(FormatTable({{"a\x1b[2J", "\u202Eb"}, {"\xC2\x9B", "\x9B"}}), "a\\x1b[2J  \\u202eb\n\\u009b    \\x9b\n");
}

TEST(FormatTest, FieldsOfAMessage) {
  v1::UpstreamStatus upstream;
  upstream.set_health(v1::UpstreamStatus::BROKEN);
  upstream.set_since_unix_ms(-7);
  upstream.set_last_error("a \"b\"");
  upstream.set_reads(true);
  EXPECT_EQ(
      FieldsOf(upstream).Str(),
      "{\"address\": \"\", \"since_unix_ms\": -7, \"last_error\": \"a \\\"b\\\"\", \"reads\": true, \"writes\": false, "
      "\"refuses_writes\": false, \"host_compiles\": \"\", \"device_compiles\": \"\", \"links\": \"\", "
      "\"refuses_steps\": \"\"}");
  v1::KeptText kept;
  kept.set_unit(3);
  kept.set_text("bytes");
  EXPECT_EQ(FieldsOf(kept).Str(), "{\"unit\": 3, \"architecture\": \"\"}");
}

}  // namespace
}  // namespace kernix::ctl
