// SPDX-License-Identifier: Apache-2.0
#include "common/base/nearest_name.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

TEST(NearestNameTest, IsTheOneThatNeedsTheFewestChanges) {
  EXPECT_EQ(NearestName("vector_ad", {"vector_add", "vector_mul"}), "vector_add");
  EXPECT_EQ(NearestName("stream", {"steam", "dream"}), "steam");
  EXPECT_EQ(NearestName("flaot", {"double", "float"}), "float");
  EXPECT_EQ(NearestName("itn", {"bool", "int"}), "int");
  EXPECT_EQ(NearestName("same", {"same", "sane"}), "same");
}

TEST(NearestNameTest, IsNoneIfAllAreFar) {
  EXPECT_EQ(NearestName("vector_add", {"softmax"}), "");
  EXPECT_EQ(NearestName("g", {"softmax", "fg"}), "fg");
  EXPECT_EQ(NearestName("g", {}), "");
  EXPECT_EQ(NearestName(std::string(300, 'a'), {std::string(300, 'a')}), "");
}

TEST(DidYouMeanTest, AsksOnlyIfThereIsAGuess) {
  EXPECT_EQ(DidYouMean("vector_ad", {"vector_add"}), " Did you mean vector_add?");
  EXPECT_EQ(DidYouMean("vector_ad", {"softmax"}), "");
}

}  // namespace
}  // namespace kernix
