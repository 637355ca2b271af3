// SPDX-License-Identifier: Apache-2.0
#include "common/base/strings.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

TEST(StringsTest, StrCatTakesEveryKindOfText) {
  const std::string_view view = "view";
  const absl::string_view absl_view = "absl";
  EXPECT_EQ(StrCat("literal ", view, " ", absl_view, " ", std::string("string"), " ", 7, " ", absl::Hex(255)),
            "literal view absl string 7 ff");
  EXPECT_EQ(StrCat(), "");
}

TEST(StringsTest, StrAppendAppends) {
  std::string text = "a";
  StrAppend(&text, std::string_view("b"), 1, "c");
  EXPECT_EQ(text, "ab1c");
}

TEST(StringsTest, ViewsGoBothWays) {
  EXPECT_EQ(ToStd(ToAbsl(std::string_view("x\0y", 3))), std::string_view("x\0y", 3));
}

}  // namespace
}  // namespace kernix
