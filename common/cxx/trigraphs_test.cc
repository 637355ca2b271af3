// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/trigraphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::language {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Texts(const std::string& text) {
  std::deque<std::string> storage;
  const std::vector<std::string_view> texts = Readings(text, storage);
  return {texts.begin(), texts.end()};
}

TEST(TrigraphsTest, TheyMayCountOrNot) {
  EXPECT_THAT(Texts("?\?=if a?\?/\nb ??? ?\?x"), ElementsAre("?\?=if a?\?/\nb ??? ?\?x", "#if a\\\nb ??? ?\?x"));
  EXPECT_THAT(Texts("??"
                    "?="),
              ElementsAre("??"
                          "?=",
                          "?#"));
}

TEST(TrigraphsTest, OtherTextIsNotCopied) {
  const std::string text = "#define A \\\n  b ?\n";
  std::deque<std::string> storage;
  EXPECT_EQ(Readings(text, storage).at(0).data(), text.data());
  EXPECT_TRUE(storage.empty());
}

}  // namespace
}  // namespace kernix::language
