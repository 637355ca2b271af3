// SPDX-License-Identifier: Apache-2.0
//
// The tags of a cache's entries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cache_fixture.h"

namespace kernix::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(CacheTest, ListsMostRecentlyUsedFirstAndByName) {
  Open();
  Insert(1, 1000, "a");
  Insert(2, 1000, "b");
  Insert(3, 1000, "a");
  ++env_.now;
  cache_->Touch(TestKey(1), {"a", UserId{1000}});
  std::vector<Digest> keys;
  const auto entries = cache_->List({});
  ASSERT_THAT(entries, IsOk());
  for (const ListedEntry& listed : *entries) keys.push_back(listed.entry.key);
  EXPECT_THAT(keys, ElementsAre(TestKey(1), TestKey(3), TestKey(2)));
  EXPECT_EQ(cache_->List({.name = "a"})->size(), 2u);
  EXPECT_THAT(*cache_->List({.name = "c"}), IsEmpty());
}

TEST_F(CacheTest, PurgesByNameOwnerAndAge) {
  Open();
  Insert(1, 1000, "a");
  Insert(2, 1000, "b");
  env_.now += 60'000;
  Insert(3, 1000, "a");

  TagFilter other_owner;
  other_owner.owner = UserId{77};
  EXPECT_EQ(cache_->Purge(other_owner)->tags, 0u);

  TagFilter old_a;
  old_a.name = "a";
  old_a.unused_since_unix_ms = env_.UnixMillis() - 30'000;
  const auto purged = cache_->Purge(old_a);
  EXPECT_EQ(purged->tags, 1u);
  EXPECT_EQ(purged->bytes, 1000u);
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(Has(2));
  EXPECT_TRUE(Has(3));

  EXPECT_EQ(cache_->Purge({})->tags, 2u);
  EXPECT_EQ(FilesInBlobs(), 0);
  EXPECT_EQ(Stats().evictions(), 0u);
}

TEST_F(CacheTest, AnArtifactThatWasLoadedUnderTwoNamesCountsUnderEach) {
  Open();
  Insert(1, 1000, "first");
  cache_->Touch(TestKey(1), {"second", UserId{1000}});
  cache_->Touch(TestKey(1), {"second", UserId{1000}});
  cache_->AddTag(TestKey(1), {"third", UserId{77}});
  EXPECT_EQ(Stats().entries(), 3u);
  const auto second = cache_->List({.name = "second"});
  ASSERT_THAT(second, IsOk());
  ASSERT_EQ(second->size(), 1u);
  EXPECT_EQ(second->front().tag, (Tag{"second", UserId{1000}}));
  EXPECT_EQ(second->front().hits, 2u);

  TagFilter filter;
  filter.name = "second";
  EXPECT_EQ(cache_->Purge(filter)->tags, 1u);
  EXPECT_TRUE(Has(1)) << "others still know it by their names";
  EXPECT_EQ(cache_->Purge(filter)->tags, 0u);
  filter.name = "third";
  filter.owner = UserId{1000};
  EXPECT_EQ(cache_->Purge(filter)->tags, 0u) << "that one is somebody else's";
  filter.owner = UserId{77};
  EXPECT_EQ(cache_->Purge(filter)->bytes, 0u);
  filter = {.name = "first"};
  const auto last = cache_->Purge(filter);
  EXPECT_EQ(last->tags, 1u);
  EXPECT_EQ(last->bytes, 1000u);
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(Stats().entries(), 0u);
  EXPECT_EQ(FilesInBlobs(), 0);
}

TEST_F(CacheTest, NamesSurviveANewBuildOfTheSameKeyAndAReopening) {
  Open();
  Insert(1, 1000, "first");
  cache_->Touch(TestKey(1), {"second", UserId{1000}});
  ASSERT_TRUE(cache_->Insert(TestEntry(1), TestTag("third"), TestArtifact(2)).ok());
  Open();
  EXPECT_EQ(Stats().entries(), 3u);
  EXPECT_EQ(cache_->List({.name = "first"})->size(), 1u);
  EXPECT_EQ(cache_->List({.name = "second"})->size(), 1u);
  EXPECT_EQ(cache_->List({.name = "third"})->size(), 1u);
}

TEST_F(CacheTest, TheNameOfAKeyThatIsGoneIsForgotten) {
  Open();
  Insert(1);
  ASSERT_THAT(cache_->Remove(TestKey(1)), IsOk());
  cache_->Touch(TestKey(1), {"late", UserId{1000}});
  EXPECT_EQ(Stats().entries(), 0u);
  EXPECT_THAT(*cache_->List({}), IsEmpty());
}

TEST_F(CacheTest, NobodyCanGiveAKeyNamesWithoutEnd) {
  Open();
  Insert(1);
  for (int i = 0; i < 1500; ++i) cache_->AddTag(TestKey(1), {StrCat("name ", i), UserId{77}});
  EXPECT_EQ(Stats().entries(), 1001u);
  cache_->AddTag(TestKey(1), {"mine", UserId{78}});
  EXPECT_EQ(cache_->List({.owner = UserId{78}})->size(), 1u) << "what one user makes up takes nothing from another";
}

TEST_F(CacheTest, ListsByOwner) {
  Open();
  Insert(1, 1000, "a");
  Insert(2, 1000, "b");
  cache_->Touch(TestKey(1), {"a", UserId{77}});
  const auto theirs = cache_->List({.owner = UserId{77}});
  ASSERT_THAT(theirs, IsOk());
  ASSERT_EQ(theirs->size(), 1u);
  EXPECT_EQ(theirs->front().tag, (Tag{"a", UserId{77}}));
  EXPECT_EQ(cache_->List({.owner = UserId{1000}})->size(), 2u);
  EXPECT_EQ(cache_->List({.name = "a", .owner = UserId{1000}})->size(), 1u);
  EXPECT_THAT(*cache_->List({.name = "b", .owner = UserId{77}}), IsEmpty());
}

Digest ArtifactOf(int i) { return DigestOf(TestArtifact(i)); }

TEST_F(CacheTest, AnArtifactBelongsToWhoHasAnEntryOfIt) {
  Open();
  Insert(1);
  EXPECT_TRUE(*cache_->Owns(UserId{1000}, ArtifactOf(1)));
  EXPECT_FALSE(*cache_->Owns(UserId{77}, ArtifactOf(1)));
  EXPECT_FALSE(*cache_->Owns(UserId{1000}, ArtifactOf(2)));
  // Not on disk yet.
  const int before = env_.Calls(Operation::kWriteFileDurably);
  cache_->AddTag(TestKey(1), {"joined", UserId{77}});
  EXPECT_TRUE(*cache_->Owns(UserId{77}, ArtifactOf(1)));
  EXPECT_EQ(env_.Calls(Operation::kWriteFileDurably), before);
  Open();
  EXPECT_TRUE(*cache_->Owns(UserId{77}, ArtifactOf(1)));
  ASSERT_THAT(cache_->Purge({.owner = UserId{77}}), IsOk());
  EXPECT_FALSE(*cache_->Owns(UserId{77}, ArtifactOf(1)));
  EXPECT_TRUE(*cache_->Owns(UserId{1000}, ArtifactOf(1)));
}

TEST_F(CacheTest, TwoKeysOfOneArtifactCountForTheirOwnersAlike) {
  Open();
  ASSERT_THAT(cache_->Insert(TestEntry(1), TestTag(), TestArtifact(1)), IsOk());
  ASSERT_THAT(cache_->Insert(TestEntry(2), {"other", UserId{77}}, TestArtifact(1)), IsOk());
  for (const UserId user : {UserId{1000}, UserId{77}}) EXPECT_TRUE(*cache_->Owns(user, ArtifactOf(1)));
}

TEST_F(CacheTest, WhatWasJustGivenOutMayBeFetchedThoughItsEntryIsGone) {
  Open(1 << 30, Duration(30'000));
  Insert(1);
  cache_->Lend(ArtifactOf(1), UserId{77});
  ASSERT_THAT(cache_->Purge({}), IsOk());
  EXPECT_TRUE(*cache_->Owns(UserId{77}, ArtifactOf(1)));
  EXPECT_FALSE(*cache_->Owns(UserId{78}, ArtifactOf(1)));
  EXPECT_THAT(ReadBlob(*cache_, ArtifactOf(1)), IsOk());
  env_.now += 30'000;
  ASSERT_THAT(cache_->Flush(), IsOk());
  EXPECT_FALSE(*cache_->Owns(UserId{77}, ArtifactOf(1)));
}

TEST_F(CacheTest, AgeCountsFromTheLastUse) {
  Open();
  Insert(1);
  env_.now += 60'000;
  cache_->Touch(TestKey(1), {"module", UserId{1000}});
  TagFilter old;
  old.unused_since_unix_ms = env_.UnixMillis() - 30'000;
  EXPECT_EQ(cache_->Purge(old)->tags, 0u);
}

}  // namespace
}  // namespace kernix::cache
