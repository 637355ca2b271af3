// SPDX-License-Identifier: Apache-2.0
//
// Tests the contracts of ActionCache, BlobStore and Journal on each implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/cache/index.h"
#include "daemon/cache/store_folder.h"
#include "tests/support/memory_cache.h"
#include "tests/support/test_util.h"
#include "tests/support/testing_entries.h"

namespace kernix::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

struct OnDisk {
  OnDisk() { EXPECT_THAT(Env::Posix().CreateDirectories(folder / "blobs"), IsOk()); }

  const ScratchDirectory folder;
  const std::shared_ptr<Index> index = Index::Open(folder / "index.sqlite").value();
  BlobFolder blobs{Env::Posix(), folder / "blobs"};
};

struct InMemory {
  const std::shared_ptr<MemoryIndex> index = std::make_shared<MemoryIndex>();
  MemoryBlobs blobs;
};

template <typename Parts>
class CacheContractTest : public testing::Test {
 protected:
  CacheContractTest() : actions_(*parts_.index), journal_(*parts_.index), blobs_(parts_.blobs) {}

  // Key i, with an artifact named by `artifact` and 1000 bytes long.
  void Put(int i, int64_t now, const Tag& tag = {"module", UserId{1000}}) { PutArtifact(i, i, now, tag); }

  void PutArtifact(int i, int artifact, int64_t now, const Tag& tag = {"module", UserId{1000}}) {
    ASSERT_THAT(actions_.Put(EntryOf(i, artifact, now), tag), IsOk());
  }

  static Entry EntryOf(int i, int artifact, int64_t now) {
    Entry entry = TestEntry(i);
    entry.artifact = ArtifactOf(artifact);
    entry.size = 1000;
    entry.created_unix_ms = now;
    return entry;
  }

  static Digest ArtifactOf(int i) { return DigestOf(TestArtifact(i)); }

  bool Has(int i) { return actions_.Find(TestKey(i)).value().has_value(); }

  std::vector<Digest> ListedKeys(const TagFilter& filter = {}) {
    const std::vector<ListedEntry> entries = journal_.List(filter).value();
    std::vector<Digest> keys;
    for (const ListedEntry& listed : entries) keys.push_back(listed.entry.key);
    return keys;
  }

  std::vector<Tag> ListedTags(const TagFilter& filter = {}) {
    const std::vector<ListedEntry> entries = journal_.List(filter).value();
    std::vector<Tag> tags;
    for (const ListedEntry& listed : entries) tags.push_back(listed.tag);
    return tags;
  }

  void Flush() { ASSERT_THAT(journal_.Flush({}), IsOk()); }

  Parts parts_;
  ActionCache& actions_;
  Journal& journal_;
  BlobStore& blobs_;
};

using AllParts = ::testing::Types<OnDisk, InMemory>;
TYPED_TEST_SUITE(CacheContractTest, AllParts);

// --- ActionCache -----------------------------------------------------------------------------------------------------

TYPED_TEST(CacheContractTest, FindsWhatWasPutWithAllItsFields) {
  EXPECT_FALSE(this->Has(1));
  const Entry entry = this->EntryOf(1, 1, 5);
  ASSERT_THAT(this->actions_.Put(entry, {"module", UserId{1000}}), IsOk());
  EXPECT_EQ(this->actions_.Find(entry.key).value(), entry);
}

TYPED_TEST(CacheContractTest, APutReplacesTheEntryAndKeepsItsTags) {
  this->Put(1, 5, {"first", UserId{1}});
  const auto replaced = this->actions_.Put(this->EntryOf(1, 2, 6), {"second", UserId{2}});
  ASSERT_THAT(replaced, IsOk());
  EXPECT_THAT(replaced->artifacts, ElementsAre(this->ArtifactOf(1)));
  EXPECT_EQ(this->actions_.Find(TestKey(1)).value()->artifact, this->ArtifactOf(2));
  EXPECT_THAT(this->ListedTags(), ElementsAre(Tag{"first", UserId{1}}, Tag{"second", UserId{2}}));
}

TYPED_TEST(CacheContractTest, APutOfTheSameArtifactDropsNothing) {
  this->Put(1, 5);
  EXPECT_THAT(this->actions_.Put(this->EntryOf(1, 1, 6), {"module", UserId{1000}})->artifacts, IsEmpty());
  EXPECT_EQ(this->journal_.holdings().bytes(), 1000u);
}

TYPED_TEST(CacheContractTest, RemovesAnEntryUnlessItNamesAnotherArtifact) {
  this->Put(1, 5);
  EXPECT_EQ(this->actions_.Remove(TestKey(1), this->ArtifactOf(2))->keys.size(), 0u);
  EXPECT_TRUE(this->Has(1));
  const auto dropped = this->actions_.Remove(TestKey(1), this->ArtifactOf(1));
  ASSERT_THAT(dropped, IsOk());
  EXPECT_EQ(dropped->keys.size(), 1u);
  EXPECT_EQ(dropped->tags, 1u);
  EXPECT_EQ(dropped->bytes, 1000u);
  EXPECT_THAT(dropped->artifacts, ElementsAre(this->ArtifactOf(1)));
  EXPECT_FALSE(this->Has(1));
  EXPECT_EQ(this->actions_.Remove(TestKey(1), std::nullopt)->keys.size(), 0u);
}

TYPED_TEST(CacheContractTest, AnArtifactIsNamedAsLongAsOneEntryNamesIt) {
  this->PutArtifact(1, 7, 5);
  this->PutArtifact(2, 7, 6);
  EXPECT_EQ(this->journal_.holdings().bytes(), 1000u);
  EXPECT_THAT(this->actions_.Remove(TestKey(1), std::nullopt)->artifacts, IsEmpty());
  EXPECT_TRUE(*this->journal_.IsNamed(this->ArtifactOf(7)));
  EXPECT_THAT(*this->journal_.Artifacts(), ElementsAre(this->ArtifactOf(7)));
  EXPECT_THAT(this->actions_.Remove(TestKey(2), std::nullopt)->artifacts, ElementsAre(this->ArtifactOf(7)));
  EXPECT_FALSE(*this->journal_.IsNamed(this->ArtifactOf(7)));
  EXPECT_THAT(*this->journal_.Artifacts(), IsEmpty());
}

// --- Journal ---------------------------------------------------------------------------------------------------------

TYPED_TEST(CacheContractTest, NotesUsesAndTags) {
  this->Put(1, 5);
  this->journal_.AddUse(TestKey(1), {"other", UserId{77}}, 9);
  this->journal_.AddUse(TestKey(1), {"module", UserId{1000}}, 8);
  this->journal_.AddTag(TestKey(1), {"joined", UserId{78}});
  this->Flush();
  EXPECT_THAT(this->ListedTags(),
              ElementsAre(Tag{"joined", UserId{78}}, Tag{"module", UserId{1000}}, Tag{"other", UserId{77}}));
  const auto listed = this->journal_.List({.owner = UserId{78}});
  ASSERT_THAT(*listed, SizeIs(1));
  EXPECT_EQ(listed->front().hits, 2u);
  EXPECT_EQ(listed->front().last_used_unix_ms, 9);
  EXPECT_EQ(this->journal_.holdings().tags, 3u);
}

TYPED_TEST(CacheContractTest, IgnoresUsesOfKeysThatAreGone) {
  this->journal_.AddUse(TestKey(1), {"late", UserId{1000}}, 9);
  this->Flush();
  EXPECT_THAT(this->ListedKeys(), IsEmpty());
  EXPECT_EQ(this->journal_.holdings().tags, 0u);
}

TYPED_TEST(CacheContractTest, TakesManyTagsOfOneOwnerButNotAllOfThem) {
  this->Put(1, 5);
  for (int i = 0; i < kMaxTagsPerOwner + 5; ++i) this->journal_.AddTag(TestKey(1), {StrCat("name ", i), UserId{77}});
  this->journal_.AddTag(TestKey(1), {"mine", UserId{78}});
  this->Flush();
  EXPECT_THAT(this->ListedTags({.owner = UserId{77}}), SizeIs(kMaxTagsPerOwner));
  EXPECT_THAT(this->ListedTags({.owner = UserId{78}}), SizeIs(1));
}

TYPED_TEST(CacheContractTest, AnArtifactBelongsToTheOwnersOfTagsAlsoBeforeTheyAreFlushed) {
  this->PutArtifact(1, 7, 5);
  this->PutArtifact(2, 7, 5, {"other", UserId{77}});
  EXPECT_TRUE(*this->journal_.HasTagOf(UserId{1000}, this->ArtifactOf(7)));
  EXPECT_TRUE(*this->journal_.HasTagOf(UserId{77}, this->ArtifactOf(7)));
  EXPECT_FALSE(*this->journal_.HasTagOf(UserId{78}, this->ArtifactOf(7)));
  EXPECT_FALSE(*this->journal_.HasTagOf(UserId{1000}, this->ArtifactOf(8)));
  this->journal_.AddTag(TestKey(1), {"joined", UserId{78}});
  EXPECT_TRUE(*this->journal_.HasTagOf(UserId{78}, this->ArtifactOf(7)));
  this->Flush();
  EXPECT_TRUE(*this->journal_.HasTagOf(UserId{78}, this->ArtifactOf(7)));
}

TYPED_TEST(CacheContractTest, ListsMostRecentlyUsedFirstAndWhatMatches) {
  this->Put(1, 5, {"a", UserId{1}});
  this->Put(2, 6, {"b", UserId{1}});
  this->Put(3, 7, {"a", UserId{2}});
  this->journal_.AddUse(TestKey(1), {"a", UserId{1}}, 9);
  this->Flush();
  EXPECT_THAT(this->ListedKeys(), ElementsAre(TestKey(1), TestKey(3), TestKey(2)));
  EXPECT_THAT(this->ListedKeys({.name = "a"}), ElementsAre(TestKey(1), TestKey(3)));
  EXPECT_THAT(this->ListedKeys({.owner = UserId{1}}), ElementsAre(TestKey(1), TestKey(2)));
  EXPECT_THAT(this->ListedKeys({.name = "a", .owner = UserId{2}}), ElementsAre(TestKey(3)));
  EXPECT_THAT(this->ListedKeys({.unused_since_unix_ms = 7}), ElementsAre(TestKey(2)));
}

TYPED_TEST(CacheContractTest, ListsEntriesWithAllFieldsButTheirToolchainHeaders) {
  Entry entry = this->EntryOf(1, 1, 5);
  ASSERT_THAT(entry.toolchain_headers, Not(IsEmpty()));
  ASSERT_THAT(this->actions_.Put(entry, {"module", UserId{1000}}), IsOk());
  const auto listed = this->journal_.List({});
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(*listed, SizeIs(1));
  entry.toolchain_headers.clear();
  EXPECT_EQ(listed->front().entry, entry);
}

TYPED_TEST(CacheContractTest, TellsTheInputsOfATagsEntriesMostRecentlyUsedFirst) {
  const Tag mine{"a", UserId{1}};
  const std::vector<BuildInput> inputs = {{InputKind::kSource, "a.cc", DigestOf("1").Raw()},
                                          {InputKind::kFlag, "-O2", ""}};
  Entry entry = this->EntryOf(1, 1, 5);
  entry.inputs = inputs;
  ASSERT_THAT(this->actions_.Put(entry, mine), IsOk());
  this->Put(2, 6, mine);
  this->Put(3, 7, {"a", UserId{2}});
  this->Put(4, 8, {"b", UserId{1}});
  EXPECT_THAT(*this->journal_.Recent(mine, 9), ElementsAre(BuiltFrom{TestKey(2), {}}, BuiltFrom{TestKey(1), inputs}));
  EXPECT_THAT(*this->journal_.Recent(mine, 1), SizeIs(1));
  EXPECT_THAT(this->actions_.Find(TestKey(1)).value()->inputs, IsEmpty()) << "no hit reads them";

  entry.inputs[1].name = "-O3";
  ASSERT_THAT(this->actions_.Put(entry, mine), IsOk());
  EXPECT_EQ(this->journal_.Recent(mine, 9)->back().inputs, entry.inputs);
  ASSERT_THAT(this->actions_.Remove(TestKey(1), std::nullopt), IsOk());
  this->Put(1, 9, mine);
  EXPECT_THAT(this->journal_.Recent(mine, 1)->front(), (BuiltFrom{TestKey(1), {}})) << "they leave with their entry";
}

TYPED_TEST(CacheContractTest, KeepsTheTraceOfABuildWithItsEntry) {
  Entry entry = this->EntryOf(1, 1, 5);
  entry.trace = std::string("bytes\0of it", 11);
  ASSERT_THAT(this->actions_.Put(entry, {"a", UserId{1}}), IsOk());
  this->Put(2, 6, {"a", UserId{1}});
  EXPECT_EQ(*this->journal_.TraceOf(TestKey(1)), entry.trace);
  EXPECT_EQ(*this->journal_.TraceOf(TestKey(2)), "") << "an entry without a trace";
  EXPECT_EQ(*this->journal_.TraceOf(TestKey(3)), "") << "no entry";
  EXPECT_EQ(this->actions_.Find(TestKey(1)).value()->trace, "") << "no hit reads it";

  entry.trace = "another";
  ASSERT_THAT(this->actions_.Put(entry, {"a", UserId{1}}), IsOk());
  EXPECT_EQ(*this->journal_.TraceOf(TestKey(1)), entry.trace) << "that of the latest build";
  Entry without = entry;
  without.trace.clear();
  ASSERT_THAT(this->actions_.Put(without, {"a", UserId{1}}), IsOk());
  EXPECT_EQ(*this->journal_.TraceOf(TestKey(1)), "") << "not that of an earlier build";
  ASSERT_THAT(this->actions_.Put(entry, {"a", UserId{1}}), IsOk());
  ASSERT_THAT(this->actions_.Remove(TestKey(1), std::nullopt), IsOk());
  this->Put(1, 9, {"a", UserId{1}});
  EXPECT_EQ(*this->journal_.TraceOf(TestKey(1)), "") << "it leaves with its entry";
}

TYPED_TEST(CacheContractTest, PurgesTagsAndTheEntriesThatHaveNoneLeft) {
  this->Put(1, 5, {"a", UserId{1}});
  this->Put(2, 6, {"a", UserId{2}});
  this->journal_.AddTag(TestKey(1), {"b", UserId{1}});
  this->Flush();
  EXPECT_EQ(this->journal_.Purge({.name = "a", .owner = UserId{3}})->tags, 0u);
  EXPECT_EQ(this->journal_.Purge({.unused_since_unix_ms = 5})->tags, 0u);
  const auto dropped = this->journal_.Purge({.name = "a"});
  ASSERT_THAT(dropped, IsOk());
  EXPECT_EQ(dropped->tags, 2u);
  EXPECT_EQ(dropped->keys.size(), 1u);
  EXPECT_EQ(dropped->bytes, 1000u);
  EXPECT_THAT(dropped->artifacts, ElementsAre(this->ArtifactOf(2)));
  EXPECT_TRUE(this->Has(1)) << "known by another name";
  EXPECT_EQ(this->journal_.Purge({})->keys.size(), 1u);
  EXPECT_EQ(this->journal_.holdings().tags, 0u);
  EXPECT_EQ(this->journal_.holdings().bytes(), 0u);
}

TYPED_TEST(CacheContractTest, EvictsTheLeastRecentlyUsedButNeverTheOneToKeep) {
  for (int i = 1; i <= 4; ++i) this->Put(i, i);
  EXPECT_EQ(this->journal_.Evict({.bytes = 4000}, std::nullopt)->keys.size(), 0u);
  this->journal_.AddUse(TestKey(1), {"module", UserId{1000}}, 9);
  const auto dropped = this->journal_.Evict({.bytes = 2500}, TestKey(2));
  ASSERT_THAT(dropped, IsOk());
  EXPECT_EQ(dropped->keys.size(), 2u);
  EXPECT_THAT(dropped->artifacts, ElementsAre(this->ArtifactOf(3), this->ArtifactOf(4)));
  EXPECT_TRUE(this->Has(1));
  EXPECT_TRUE(this->Has(2));
  EXPECT_EQ(this->journal_.Evict({.bytes = 0}, TestKey(2))->keys.size(), 1u);
  EXPECT_TRUE(this->Has(2));
  EXPECT_EQ(this->journal_.LoadTotals().value()[static_cast<size_t>(Total::kEvictions)], 3u);
}

constexpr UserId kFew{1};
constexpr UserId kMany{2};

// Entries 1 and 2 are theirs who load few, and oldest; the others are theirs who load many.
TYPED_TEST(CacheContractTest, AFullCacheTakesFromWhoHoldsMost) {
  for (int i = 1; i <= 2; ++i) this->Put(i, i, {"few", kFew});
  for (int i = 3; i <= 8; ++i) this->Put(i, i, {"many", kMany});
  const auto dropped = this->journal_.Evict({.bytes = 5500}, TestKey(8));
  ASSERT_THAT(dropped, IsOk());
  EXPECT_THAT(dropped->keys, ElementsAre(TestKey(3), TestKey(4), TestKey(5)));
  ASSERT_THAT(this->journal_.Evict({.bytes = 1500}, TestKey(8)), IsOk());
  EXPECT_TRUE(this->Has(8));
  EXPECT_FALSE(this->Has(1) || this->Has(2)) << "nothing else can go";
}

TYPED_TEST(CacheContractTest, AUserHasALimitOfTheirOwn) {
  for (int i = 1; i <= 2; ++i) this->Put(i, i, {"few", kFew});
  for (int i = 3; i <= 6; ++i) this->Put(i, i, {"many", kMany});
  EXPECT_GE(this->journal_.HeldBy(kMany).value(), 4000u);
  const auto dropped = this->journal_.Evict({.bytes = 1 << 20, .bytes_per_user = 2900}, std::nullopt);
  ASSERT_THAT(dropped, IsOk());
  EXPECT_THAT(dropped->keys, ElementsAre(TestKey(3), TestKey(4)));
  EXPECT_LE(this->journal_.HeldBy(kMany).value(), 2900u);
  EXPECT_GE(this->journal_.HeldBy(kFew).value(), 2000u);
  EXPECT_TRUE(this->Has(1) && this->Has(2));
}

TYPED_TEST(CacheContractTest, WhatOthersHaveLoadedStaysForThem) {
  this->Put(1, 1, {"many", kMany});
  this->journal_.AddTag(TestKey(1), {"few", kFew});
  for (int i = 2; i <= 4; ++i) this->Put(i, i, {"many", kMany});
  this->Flush();
  const auto dropped = this->journal_.Evict({.bytes = 1 << 20, .bytes_per_user = 2900}, std::nullopt);
  ASSERT_THAT(dropped, IsOk());
  EXPECT_THAT(dropped->keys, ElementsAre(TestKey(2)));
  EXPECT_EQ(dropped->tags, 2u);
  EXPECT_TRUE(this->Has(1));
  EXPECT_TRUE(this->journal_.HasTagOf(kFew, this->ArtifactOf(1)).value());
  EXPECT_FALSE(this->journal_.HasTagOf(kMany, this->ArtifactOf(1)).value());
}

TYPED_TEST(CacheContractTest, WhatAUserHoldsFollowsEachChange) {
  this->Put(1, 1, {"a", kFew});
  const uint64_t one = this->journal_.HeldBy(kFew).value();
  EXPECT_GE(one, 1000u);
  this->Put(1, 2, {"a", kFew});
  EXPECT_EQ(this->journal_.HeldBy(kFew).value(), one) << "a new build of the same";
  this->Put(2, 3, {"a", kFew});
  this->journal_.AddTag(TestKey(2), {"a", kMany});
  this->Flush();
  EXPECT_EQ(this->journal_.HeldBy(kFew).value(), 2 * one);
  EXPECT_EQ(this->journal_.HeldBy(kMany).value(), one) << "each in full";
  ASSERT_THAT(this->actions_.Remove(TestKey(1), std::nullopt), IsOk());
  EXPECT_EQ(this->journal_.HeldBy(kFew).value(), one);
  ASSERT_THAT(this->journal_.Purge({.owner = kFew}), IsOk());
  EXPECT_EQ(this->journal_.HeldBy(kFew).value(), 0u);
  EXPECT_EQ(this->journal_.HeldBy(kMany).value(), one);
}

TYPED_TEST(CacheContractTest, TotalsAreTheLargestThatWereWritten) {
  this->Put(1, 5);
  Totals totals = this->journal_.LoadTotals().value();
  EXPECT_THAT(totals, ElementsAre(1, 0, 0, 0, 0, 0, 0, 0));
  ASSERT_THAT(this->journal_.Flush({0, 2, 3, 4, 5, 6, 7, 8}), IsOk());
  EXPECT_THAT(this->journal_.LoadTotals().value(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  ASSERT_THAT(this->journal_.Flush({2, 1, 4}), IsOk());
  EXPECT_THAT(this->journal_.LoadTotals().value(), ElementsAre(2, 2, 4, 4, 5, 6, 7, 8));
}

TYPED_TEST(CacheContractTest, WhatAnotherNodeHasBuiltCountsAsThat) {
  Entry entry = this->EntryOf(1, 1, 5);
  entry.origin = "grpc://engine:1";
  ASSERT_THAT(this->actions_.Put(entry, {"module", UserId{1000}}), IsOk());
  EXPECT_THAT(this->journal_.LoadTotals().value(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 1));
  const auto found = this->actions_.Find(entry.key);
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->origin, "grpc://engine:1");
}

TYPED_TEST(CacheContractTest, KeepsKnownFilesByPath) {
  const KnownFile one{"/one", {.size = 1}, DigestOf("1")};
  ASSERT_THAT(this->journal_.SaveKnownFiles({one, {"/two", {}, DigestOf("2")}}), IsOk());
  ASSERT_THAT(this->journal_.SaveKnownFiles({{"/one", {.size = 3}, DigestOf("3")}}), IsOk());
  const auto files = this->journal_.LoadKnownFiles();
  ASSERT_THAT(files, IsOk());
  ASSERT_THAT(*files, SizeIs(2));
  EXPECT_EQ(files->at(0).path, "/one");
  EXPECT_EQ(files->at(0).identity.size, 3u);
  EXPECT_EQ(files->at(0).digest, DigestOf("3"));
  EXPECT_EQ(files->at(1).path, "/two");
}

// --- BlobStore -------------------------------------------------------------------------------------------------------

TYPED_TEST(CacheContractTest, KeepsBlobs) {
  const Digest digest = DigestOf("content");
  EXPECT_FALSE(*this->blobs_.IsSound(digest, 7));
  EXPECT_TRUE(absl::IsNotFound(this->blobs_.Open(digest).status()));
  ASSERT_THAT(this->blobs_.Put(digest, "content", Durability::kSurvives), IsOk());
  ASSERT_THAT(this->blobs_.Put(digest, "content", Durability::kSurvives), IsOk());
  EXPECT_TRUE(*this->blobs_.IsSound(digest, 7));
  EXPECT_FALSE(*this->blobs_.IsSound(digest, 8));
  EXPECT_EQ(ReadAll(**this->blobs_.Open(digest)).value(), "content");
}

TYPED_TEST(CacheContractTest, OtherContentThanADigestSaysIsFoundOutAndReplaced) {
  const Digest digest = DigestOf("content");
  // Simulates damage: other content of the same size, at the place of that digest.
  ASSERT_THAT(this->blobs_.Put(digest, "CONTENT", Durability::kSurvives), IsOk());
  if (!this->blobs_.PathOf(digest).empty()) {
    ASSERT_THAT(Env::Posix().RemoveFile(this->blobs_.PathOf(digest)), IsOk());
    ASSERT_THAT(Env::Posix().WriteFile(this->blobs_.PathOf(digest), "CONTENT", 0444), IsOk());
  }
  EXPECT_FALSE(*this->blobs_.IsSound(digest, 7));
  EXPECT_TRUE(absl::IsDataLoss(this->blobs_.Open(digest).status()));
  ASSERT_THAT(this->blobs_.Put(digest, "content", Durability::kSurvives), IsOk());
  EXPECT_TRUE(*this->blobs_.IsSound(digest, 7));
}

TYPED_TEST(CacheContractTest, ABlobThatIsOpenStaysReadableWhenItIsRemoved) {
  const Digest digest = DigestOf("content");
  ASSERT_THAT(this->blobs_.Put(digest, "content", Durability::kSurvives), IsOk());
  const auto blob = this->blobs_.Open(digest);
  ASSERT_THAT(blob, IsOk());
  ASSERT_THAT(this->blobs_.Remove(digest), IsOk());
  ASSERT_THAT(this->blobs_.Remove(digest), IsOk());
  EXPECT_FALSE(*this->blobs_.IsSound(digest, 7));
  EXPECT_EQ(ReadAll(**blob).value(), "content");
}

TYPED_TEST(CacheContractTest, RemovesAllBlobsButThoseToKeep) {
  for (const char* content : {"a", "b", "c"})
    ASSERT_THAT(this->blobs_.Put(DigestOf(content), content, Durability::kSurvives), IsOk());
  ASSERT_THAT(this->blobs_.RemoveAllBut({DigestOf("b")}), IsOk());
  EXPECT_FALSE(*this->blobs_.IsSound(DigestOf("a"), 1));
  EXPECT_TRUE(*this->blobs_.IsSound(DigestOf("b"), 1));
  EXPECT_FALSE(*this->blobs_.IsSound(DigestOf("c"), 1));
}

}  // namespace
}  // namespace kernix::cache
