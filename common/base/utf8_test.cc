// SPDX-License-Identifier: Apache-2.0
#include "common/base/utf8.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

constexpr char kReplaced[] = "\xEF\xBF\xBD";

TEST(Utf8Test, KeepsWhatIsWellFormed) {
  // One sequence of each length, and the limits of the ranges.
  for (const char* text : {"", "plain", "\xC2\x80", "\xC3\xA9", "\xE2\x80\x98", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
    EXPECT_EQ(ToValidUtf8(text), text);
  }
}

TEST(Utf8Test, ReplacesEachBadByte) {
  EXPECT_EQ(ToValidUtf8("a\x80z"), std::string("a") + kReplaced + "z");                    // no lead byte
  EXPECT_EQ(ToValidUtf8("\xE2\x80"), std::string(kReplaced) + kReplaced);                  // truncated
  EXPECT_EQ(ToValidUtf8("\xC0\xAF"), std::string(kReplaced) + kReplaced);                  // overlong
  EXPECT_EQ(ToValidUtf8("\xE0\x80\xAF"), std::string(kReplaced) + kReplaced + kReplaced);  // overlong
  EXPECT_EQ(ToValidUtf8("\xED\xA0\x80"), std::string(kReplaced) + kReplaced + kReplaced);  // surrogate
  EXPECT_EQ(ToValidUtf8("\xF4\x90\x80\x80").size(), 4 * 3u);                               // beyond U+10FFFF
  EXPECT_EQ(ToValidUtf8("\xE2(\xA1"), std::string(kReplaced) + "(" + kReplaced);           // broken inside
}

TEST(Utf8Test, EscapesWhatActsOnATerminal) {
  EXPECT_EQ(Printable("\x1b[31mred\x07\x7f\r"), "\\x1b[31mred\\x07\\x7f\\x0d");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "2J"),
            "\\u009b2J");  // C1
  EXPECT_EQ(Printable("\x9B"
                      "2J"),
            "\\x9b2J");                                          // the same as a raw byte
  EXPECT_EQ(Printable("a\u202Eb\u202Ac"), "a\\u202eb\\u202ac");  // direction
  EXPECT_EQ(Printable("\u2066\u2069\u200E\u200F\u061C"), "\\u2066\\u2069\\u200e\\u200f\\u061c");
  EXPECT_EQ(Printable("\u2028\u2029"), "\\u2028\\u2029");  // line separators
  EXPECT_EQ(Printable("\xE2\x80"), "\\xe2\\x80");          // truncated
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Utf8Test, WhatCanBeReadStaysAsItIs) {
  for (const char* text : {"", "vector_add", "C:\\x1b", "\u00e9\u4e2d\u6587 \U0001F600 \u200D\u2010", "it's \"so\""}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Utf8Test, LinesStayLines) {
  EXPECT_EQ(PrintableLines("one\n\ttwo\x1b[m\r\n"), "one\n\ttwo\\x1b[m\\x0d\n");
  EXPECT_EQ(Printable("one\n\ttwo"), "one\\x0a\\x09two");
}

TEST(Utf8Test, CutsAStreamBetweenSequences) {
  EXPECT_EQ(CompleteUtf8Prefix("abc"), 3u);
  EXPECT_EQ(CompleteUtf8Prefix("ab\xE2"), 2u);
  EXPECT_EQ(CompleteUtf8Prefix("ab\xE2\x80"), 2u);
  EXPECT_EQ(CompleteUtf8Prefix("ab\xE2\x80\x98"), 5u);
  EXPECT_EQ(CompleteUtf8Prefix("\xF0\x90\x80"), 0u);
  EXPECT_EQ(CompleteUtf8Prefix("\x80\x80\x80\x80"), 4u);  // never complete: nothing to wait for
  EXPECT_EQ(CompleteUtf8Prefix(""), 0u);
}

}  // namespace
}  // namespace kernix
