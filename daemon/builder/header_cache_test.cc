// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/header_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace kernix::build {
namespace {

constexpr size_t kSize = 1000;
constexpr uint64_t kRoomForTwo = 3000;

std::string Text(char c) { return std::string(kSize, c); }

constexpr UserId kUser{1000};
constexpr UserId kOther{1001};

void Add(HeaderCache& cache, const std::string& text, UserId user = kUser) {
  cache.Add(user, {{DigestOf(text), exec::MakeContent(text)}});
}

bool Has(HeaderCache& cache, const std::string& text, UserId user = kUser) {
  const HeaderContents found = cache.Find(user, {DigestOf(text)});
  if (found.empty()) return false;
  EXPECT_EQ(*found.at(DigestOf(text)), text);
  return true;
}

TEST(HeaderCacheTest, FindsWhatItHasOfWhatIsAskedFor) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  const HeaderContents found = cache.Find(kUser, {DigestOf(Text('a')), DigestOf(Text('b'))});
  EXPECT_EQ(found.size(), 1u);
  EXPECT_EQ(*found.at(DigestOf(Text('a'))), Text('a'));
}

TEST(HeaderCacheTest, KeepsWhatWasUsedLast) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  Add(cache, Text('b'));
  EXPECT_TRUE(Has(cache, Text('a')));
  Add(cache, Text('c'));
  EXPECT_TRUE(Has(cache, Text('a')));
  EXPECT_FALSE(Has(cache, Text('b')));
  EXPECT_TRUE(Has(cache, Text('c')));
}

TEST(HeaderCacheTest, WhatIsTooLargeDoesNotDriveOutTheRest) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  Add(cache, std::string(2 * kRoomForTwo, 'x'));
  EXPECT_TRUE(Has(cache, Text('a')));
  EXPECT_FALSE(Has(cache, std::string(2 * kRoomForTwo, 'x')));
}

TEST(HeaderCacheTest, AddingTheSameAgainTakesNoRoom) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  for (int i = 0; i < 10; ++i) Add(cache, Text('b'));
  EXPECT_TRUE(Has(cache, Text('a')));
}

TEST(HeaderCacheTest, AContentServesWhoHasSentIt) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  EXPECT_FALSE(Has(cache, Text('a'), kOther));
  Add(cache, Text('a'), kOther);
  EXPECT_TRUE(Has(cache, Text('a'), kOther));
  EXPECT_TRUE(Has(cache, Text('a')));
}

TEST(HeaderCacheTest, WhoHasMostMakesRoom) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  for (const char c : {'b', 'c', 'd'}) Add(cache, Text(c), kOther);
  EXPECT_TRUE(Has(cache, Text('a')));
  EXPECT_FALSE(Has(cache, Text('c'), kOther));
  EXPECT_TRUE(Has(cache, Text('d'), kOther));
}

}  // namespace
}  // namespace kernix::build
