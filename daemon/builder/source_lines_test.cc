// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/source_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

constexpr char kSource[] = "int a;\n\tint x = y;\r\nint \xc3\xa4 = z;\n";

std::string Shown(const std::string& output) {
  QuotableTexts texts;
  texts.Add("k.cc", kSource);
  texts.Add("inc/0/x.h", "#pragma once\nint h = g;");
  texts.Add("twice.cc", "one");
  texts.Add("twice.cc", "two");
  return WithSourceLines(output, texts);
}

TEST(SourceLinesTest, PutsTheLineAndAMarkUnderAMessage) {
  EXPECT_EQ(Shown("k.cc:1:5: error: no\nk.cc: In function\n"),
            "k.cc:1:5: error: no\n    1 | int a;\n      |     ^\nk.cc: In function\n");
  EXPECT_EQ(Shown("k.cc:1:1: warning: a [-Wx]"), "k.cc:1:1: warning: a [-Wx]\n    1 | int a;\n      | ^\n");
}

TEST(SourceLinesTest, CountsColumnsAsTheyAreShown) {
  EXPECT_THAT(Shown("k.cc:2:17: error: no\n"), HasSubstr("    2 |         int x = y;\n      |                 ^\n"));
  EXPECT_THAT(Shown("k.cc:3:9: fatal error: no\n"), HasSubstr("    3 | int \xc3\xa4 = z;\n      |         ^\n"));
  EXPECT_THAT(Shown("k.cc:1:999: note: far\n"), HasSubstr("    1 | int a;\n      |       ^\n"));
}

TEST(SourceLinesTest, KnowsHeadersByTheirPlaceAndTheAssemblersMessages) {
  EXPECT_THAT(Shown("inc/0/sub/../x.h:2:9: error: no\n"), HasSubstr("    2 | int h = g;\n      |         ^\n"));
  EXPECT_EQ(Shown("k.cc:1: Error: no such instruction: `a'\n"),
            "k.cc:1: Error: no such instruction: `a'\n    1 | int a;\n");
}

TEST(SourceLinesTest, LeavesAllElseAsItIs) {
  for (const char* output :
       {"/etc/passwd:1:1: error: no\n", "k.cc:9:1: error: no\n", "k.cc:0:1: error: no\n", "k.cc(1): error: no\n",
        "twice.cc:1:1: error: no\n", "../k.cc:1:1: error: no\n", "error: \n", ": error: \n", ":1: error: \n", "\n", "",
        "collect2: error: ld returned 1\n"}) {
    EXPECT_EQ(Shown(output), output);
  }
}

TEST(SourceLinesTest, ShowsNoLineWithoutEnd) {
  QuotableTexts texts;
  const std::string text(100'000, 'x');
  texts.Add("k.cc", text);
  EXPECT_EQ(WithSourceLines("k.cc:1:1: error: no\n", texts), "k.cc:1:1: error: no\n");
}

}  // namespace
}  // namespace kernix::build
