// SPDX-License-Identifier: Apache-2.0
#include "common/base/lru.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string Keys(const Lru<std::string, int>& lru) {
  std::string keys;
  for (const auto& [key, value] : lru) keys += key;
  return keys;
}

TEST(LruTest, WhatWasUsedLongestAgoMakesRoom) {
  Lru<std::string, int> lru(3);
  for (const char* key : {"a", "b", "c"}) lru.Put(key, key[0]);
  ASSERT_NE(lru.Find("a"), nullptr);
  lru.Put("d", 'd');
  EXPECT_EQ(Keys(lru), "dac");
  EXPECT_EQ(lru.Find("b"), nullptr);
  EXPECT_EQ(*lru.Find("c"), 'c');
}

TEST(LruTest, ANewValueReplacesAndMakesNoRoom) {
  Lru<std::string, int> lru(2);
  lru.Put("a", 1);
  lru.Put("b", 2);
  lru.Put("a", 3);
  EXPECT_EQ(Keys(lru), "ab");
  EXPECT_EQ(*lru.Find("a"), 3);
}

TEST(LruTest, WhatAnElementCostsMakesRoom) {
  Lru<std::string, int> lru(10);
  lru.Put("a", 1, 4);
  lru.Put("b", 2, 4);
  EXPECT_THAT(lru.Put("c", 3, 5), ElementsAre(Pair("a", 1)));
  EXPECT_EQ(Keys(lru), "cb");
  EXPECT_EQ(lru.used(), 9u);
  EXPECT_THAT(lru.Put("large", 4, 11), ElementsAre(Pair("large", 4)));
  EXPECT_EQ(Keys(lru), "cb");
  EXPECT_THAT(lru.Put("b", 5, 1), IsEmpty());
  EXPECT_EQ(lru.used(), 6u);
  lru.Drop("c");
  EXPECT_EQ(lru.used(), 1u);
}

TEST(LruTest, TheOldestThatMatchesIsTaken) {
  Lru<std::string, int> lru(9);
  for (int i = 0; i < 6; ++i) lru.Put(std::to_string(i), i);
  const auto is_odd = [](int value) { return value % 2 == 1; };
  EXPECT_EQ(lru.TakeOldest(is_odd), 1);
  EXPECT_EQ(Keys(lru), "54320");
  EXPECT_TRUE(lru.TakeOldest(is_odd) && lru.TakeOldest(is_odd));
  EXPECT_EQ(lru.TakeOldest(is_odd), std::nullopt);
  EXPECT_EQ(Keys(lru), "420");
  EXPECT_EQ(lru.TakeOldest(), 0);
  lru.Clear();
  EXPECT_EQ(lru.size(), 0u);
  EXPECT_FALSE(lru.Contains("4"));
}

}  // namespace
}  // namespace kernix
