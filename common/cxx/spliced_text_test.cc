// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/spliced_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::language {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Texts(const std::string& text) {
  std::deque<std::string> storage;
  const std::vector<std::string_view> texts = SplicedTexts(text, storage);
  return {texts.begin(), texts.end()};
}

TEST(SplicedTextTest, WordsAreInOnePiece) {
  EXPECT_THAT(Texts("__has_inc\\\nlude(x)\n"), ElementsAre("__has_include\\\n(x)\n"));
  EXPECT_THAT(Texts("a\\\n\\\nb\\\nc d"), ElementsAre("abc\\\n\\\n\\\n d"));
  EXPECT_THAT(Texts("end\\\nof"), ElementsAre("endof\\\n"));
  EXPECT_THAT(Texts("#if x \\ \t\r\n y\n"), ElementsAre("#if x \\\n y\n"));
  EXPECT_THAT(Texts("a(\\\nb)"), ElementsAre("a(\\\nb)"));
}

TEST(SplicedTextTest, OtherTextIsNotCopied) {
  const std::string text = "#define A \\\n  b\nconst char* s = \"\\n\";\n";
  std::deque<std::string> storage;
  EXPECT_EQ(SplicedTexts(text, storage).at(0).data(), text.data());
  EXPECT_TRUE(storage.empty());
}

TEST(SplicedTextTest, TrigraphsMayCountOrNot) {
  EXPECT_THAT(Texts("?\?=if a?\?/\nb ??? ?\?x"), ElementsAre("?\?=if a?\?/\nb ??? ?\?x", "#if ab\\\n ??? ?\?x"));
  EXPECT_THAT(Texts("??"
                    "?="),
              ElementsAre("??"
                          "?=",
                          "?#"));
}

TEST(SplicedTextTest, NamesAreJoined) {
  EXPECT_EQ(WithoutSplices("/et\\\nc/x\\ \n.h"), "/etc/x.h");
  EXPECT_EQ(WithoutSplices("a\\b"), "a\\b");
}

}  // namespace
}  // namespace kernix::language
