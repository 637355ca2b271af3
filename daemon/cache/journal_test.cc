// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/testing_entries.h"

namespace kernix::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr UserId kAlice{1000};
constexpr UserId kBob{1001};

TEST(PendingUseBufferTest, GivesAllThatHasGatheredOnce) {
  PendingUseBuffer buffer;
  buffer.AddUse(TestKey(1), {"a", kAlice}, 5);
  buffer.AddUse(TestKey(1), {"a", kAlice}, 4);
  buffer.AddTag(TestKey(1), {"b", kBob});
  const auto taken = buffer.Take();
  ASSERT_EQ(taken->size(), 1u);
  const PendingUse& use = taken->at(TestKey(1));
  EXPECT_EQ(use.last_used_unix_ms, 5);
  EXPECT_EQ(use.hits, 2u);
  EXPECT_THAT(use.tags, ElementsAre(Tag{"a", kAlice}, Tag{"b", kBob}));
  buffer.Written();
  EXPECT_THAT(*buffer.Take(), IsEmpty());
}

TEST(PendingUseBufferTest, KnowsOfATagUntilItIsWritten) {
  PendingUseBuffer buffer;
  buffer.AddTag(TestKey(1), {"a", kAlice});
  EXPECT_TRUE(buffer.HasTagOf(kAlice, TestKey(1)));
  EXPECT_FALSE(buffer.HasTagOf(kBob, TestKey(1)));
  EXPECT_FALSE(buffer.HasTagOf(kAlice, TestKey(2)));
  buffer.Take();
  buffer.AddTag(TestKey(2), {"a", kAlice});
  EXPECT_TRUE(buffer.HasTagOf(kAlice, TestKey(1))) << "it is being written";
  EXPECT_TRUE(buffer.HasTagOf(kAlice, TestKey(2)));
  buffer.Written();
  EXPECT_FALSE(buffer.HasTagOf(kAlice, TestKey(1)));
  EXPECT_TRUE(buffer.HasTagOf(kAlice, TestKey(2))) << "it came later";
}

TEST(PendingUseBufferTest, WhatCouldNotBeWrittenWaitsWithWhatCameMeanwhile) {
  PendingUseBuffer buffer;
  buffer.AddUse(TestKey(1), {"a", kAlice}, 5);
  buffer.Take();
  buffer.AddUse(TestKey(1), {"b", kBob}, 4);
  buffer.PutBack();
  EXPECT_TRUE(buffer.HasTagOf(kAlice, TestKey(1)));
  EXPECT_TRUE(buffer.HasTagOf(kBob, TestKey(1)));
  const auto taken = buffer.Take();
  EXPECT_EQ(taken->at(TestKey(1)).last_used_unix_ms, 5);
  EXPECT_EQ(taken->at(TestKey(1)).hits, 2u);
  EXPECT_THAT(taken->at(TestKey(1)).tags, ElementsAre(Tag{"a", kAlice}, Tag{"b", kBob}));
}

TEST(PendingUseBufferTest, AUserHasSoManyTagsAtATime) {
  PendingUseBuffer buffer;
  for (int i = 0; i < kMaxPendingTagsPerOwner + 10; ++i) buffer.AddUse(TestKey(1), {std::to_string(i), kAlice}, 5);
  buffer.AddUse(TestKey(1), {"b", kBob}, 5);
  auto taken = buffer.Take();
  EXPECT_EQ(taken->at(TestKey(1)).tags.size(), kMaxPendingTagsPerOwner + 1u);
  EXPECT_EQ(taken->at(TestKey(1)).hits, kMaxPendingTagsPerOwner + 11u);
  buffer.AddUse(TestKey(1), {"later", kAlice}, 5);
  EXPECT_TRUE(buffer.HasTagOf(kAlice, TestKey(1)));
  buffer.PutBack();
  EXPECT_EQ(buffer.Take()->at(TestKey(1)).tags.size(), kMaxPendingTagsPerOwner + 1u);
}

}  // namespace

}  // namespace kernix::cache
