// SPDX-License-Identifier: Apache-2.0
//
// Tests what a cache relies on: the promises of Index and of BlobFolder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/cache/index.h"
#include "daemon/cache/store_folder.h"
#include "tests/support/test_util.h"
#include "tests/support/testing_entries.h"

namespace kernix::cache {
namespace {

constexpr int64_t kNow = 1'000'000'000;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class CacheContractTest : public testing::Test {
 protected:
  CacheContractTest() { EXPECT_THAT(Env::Posix().CreateDirectories(folder_ / "blobs"), IsOk()); }

  // Key i, with an artifact named by `artifact` and 1000 bytes long.
  void Put(int i, int64_t now, const Tag& tag = {"module", UserId{1000}}) { PutArtifact(i, i, now, tag); }

  void PutArtifact(int i, int artifact, int64_t now, const Tag& tag = {"module", UserId{1000}}) {
    ASSERT_THAT(index_->Put(EntryOf(i, artifact, now), tag), IsOk());
  }

  static Entry EntryOf(int i, int artifact, int64_t now) {
    Entry entry = TestEntry(i);
    entry.artifact = ArtifactOf(artifact);
    entry.size = 1000;
    entry.created_unix_ms = now;
    return entry;
  }

  static Digest ArtifactOf(int i) { return DigestOf(TestArtifact(i)); }

  bool Has(int i) { return index_->Find(TestKey(i)).value().has_value(); }

  std::vector<Digest> ListedKeys(const TagFilter& filter = {}) {
    const std::vector<ListedEntry> entries = index_->List(filter).value();
    std::vector<Digest> keys;
    for (const ListedEntry& listed : entries) keys.push_back(listed.entry.key);
    return keys;
  }

  std::vector<Tag> ListedTags(const TagFilter& filter = {}) {
    const std::vector<ListedEntry> entries = index_->List(filter).value();
    std::vector<Tag> tags;
    for (const ListedEntry& listed : entries) tags.push_back(listed.tag);
    return tags;
  }

  void Flush() { ASSERT_THAT(index_->Flush({}), IsOk()); }

  const ScratchDirectory folder_;
  const std::unique_ptr<Index> index_ = Index::Open(folder_ / "index.sqlite").value();
  BlobFolder blobs_{Env::Posix(), folder_ / "blobs"};
};

// --- Index: the action cache -----------------------------------------------------------------------------------------

TEST_F(CacheContractTest, FindsWhatWasPutWithAllItsFields) {
  EXPECT_FALSE(Has(1));
  const Entry entry = EntryOf(1, 1, 5);
  ASSERT_THAT(index_->Put(entry, {"module", UserId{1000}}), IsOk());
  EXPECT_EQ(index_->Find(entry.key).value(), entry);
}

TEST_F(CacheContractTest, APutReplacesTheEntryAndKeepsItsTags) {
  Put(1, 5, {"first", UserId{1}});
  const auto replaced = index_->Put(EntryOf(1, 2, 6), {"second", UserId{2}});
  ASSERT_THAT(replaced, IsOk());
  EXPECT_THAT(replaced->artifacts, ElementsAre(ArtifactOf(1)));
  EXPECT_EQ(index_->Find(TestKey(1)).value()->artifact, ArtifactOf(2));
  EXPECT_THAT(ListedTags(), ElementsAre(Tag{"first", UserId{1}}, Tag{"second", UserId{2}}));
}

TEST_F(CacheContractTest, APutOfTheSameArtifactDropsNothing) {
  Put(1, 5);
  EXPECT_THAT(index_->Put(EntryOf(1, 1, 6), {"module", UserId{1000}})->artifacts, IsEmpty());
  EXPECT_EQ(index_->holdings().bytes(), 1000u);
}

TEST_F(CacheContractTest, RemovesAnEntryUnlessItNamesAnotherArtifact) {
  Put(1, 5);
  EXPECT_EQ(index_->Remove(TestKey(1), ArtifactOf(2))->keys.size(), 0u);
  EXPECT_TRUE(Has(1));
  const auto dropped = index_->Remove(TestKey(1), ArtifactOf(1));
  ASSERT_THAT(dropped, IsOk());
  EXPECT_EQ(dropped->keys.size(), 1u);
  EXPECT_EQ(dropped->tags, 1u);
  EXPECT_EQ(dropped->bytes, 1000u);
  EXPECT_THAT(dropped->artifacts, ElementsAre(ArtifactOf(1)));
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(index_->Remove(TestKey(1), std::nullopt)->keys.size(), 0u);
}

TEST_F(CacheContractTest, AnArtifactIsNamedAsLongAsOneEntryNamesIt) {
  PutArtifact(1, 7, 5);
  PutArtifact(2, 7, 6);
  EXPECT_EQ(index_->holdings().bytes(), 1000u);
  EXPECT_THAT(index_->Remove(TestKey(1), std::nullopt)->artifacts, IsEmpty());
  EXPECT_TRUE(*index_->IsNamed(ArtifactOf(7)));
  EXPECT_THAT(*index_->Artifacts(), ElementsAre(ArtifactOf(7)));
  EXPECT_THAT(index_->Remove(TestKey(2), std::nullopt)->artifacts, ElementsAre(ArtifactOf(7)));
  EXPECT_FALSE(*index_->IsNamed(ArtifactOf(7)));
  EXPECT_THAT(*index_->Artifacts(), IsEmpty());
}

// --- Index: the journal ----------------------------------------------------------------------------------------------

TEST_F(CacheContractTest, NotesUsesAndTags) {
  Put(1, 5);
  index_->AddUse(TestKey(1), {"other", UserId{77}}, 9);
  index_->AddUse(TestKey(1), {"module", UserId{1000}}, 8);
  index_->AddTag(TestKey(1), {"joined", UserId{78}});
  Flush();
  EXPECT_THAT(ListedTags(),
              ElementsAre(Tag{"joined", UserId{78}}, Tag{"module", UserId{1000}}, Tag{"other", UserId{77}}));
  const auto listed = index_->List({.owner = UserId{78}});
  ASSERT_THAT(*listed, SizeIs(1));
  EXPECT_EQ(listed->front().hits, 2u);
  EXPECT_EQ(listed->front().last_used_unix_ms, 9);
  EXPECT_EQ(index_->holdings().tags, 3u);
}

TEST_F(CacheContractTest, IgnoresUsesOfKeysThatAreGone) {
  index_->AddUse(TestKey(1), {"late", UserId{1000}}, 9);
  Flush();
  EXPECT_THAT(ListedKeys(), IsEmpty());
  EXPECT_EQ(index_->holdings().tags, 0u);
}

TEST_F(CacheContractTest, TakesManyTagsOfOneOwnerButNotAllOfThem) {
  Put(1, 5);
  for (int i = 0; i < kMaxTagsPerOwner + 5; ++i) index_->AddTag(TestKey(1), {StrCat("name ", i), UserId{77}});
  index_->AddTag(TestKey(1), {"mine", UserId{78}});
  Flush();
  EXPECT_THAT(ListedTags({.owner = UserId{77}}), SizeIs(kMaxTagsPerOwner));
  EXPECT_THAT(ListedTags({.owner = UserId{78}}), SizeIs(1));
}

TEST_F(CacheContractTest, AnArtifactBelongsToTheOwnersOfTagsAlsoBeforeTheyAreFlushed) {
  PutArtifact(1, 7, 5);
  PutArtifact(2, 7, 5, {"other", UserId{77}});
  EXPECT_TRUE(*index_->HasTagOf(UserId{1000}, ArtifactOf(7)));
  EXPECT_TRUE(*index_->HasTagOf(UserId{77}, ArtifactOf(7)));
  EXPECT_FALSE(*index_->HasTagOf(UserId{78}, ArtifactOf(7)));
  EXPECT_FALSE(*index_->HasTagOf(UserId{1000}, ArtifactOf(8)));
  index_->AddTag(TestKey(1), {"joined", UserId{78}});
  EXPECT_TRUE(*index_->HasTagOf(UserId{78}, ArtifactOf(7)));
  Flush();
  EXPECT_TRUE(*index_->HasTagOf(UserId{78}, ArtifactOf(7)));
}

TEST_F(CacheContractTest, ListsMostRecentlyUsedFirstAndWhatMatches) {
  Put(1, 5, {"a", UserId{1}});
  Put(2, 6, {"b", UserId{1}});
  Put(3, 7, {"a", UserId{2}});
  index_->AddUse(TestKey(1), {"a", UserId{1}}, 9);
  Flush();
  EXPECT_THAT(ListedKeys(), ElementsAre(TestKey(1), TestKey(3), TestKey(2)));
  EXPECT_THAT(ListedKeys({.name = "a"}), ElementsAre(TestKey(1), TestKey(3)));
  EXPECT_THAT(ListedKeys({.owner = UserId{1}}), ElementsAre(TestKey(1), TestKey(2)));
  EXPECT_THAT(ListedKeys({.name = "a", .owner = UserId{2}}), ElementsAre(TestKey(3)));
  EXPECT_THAT(ListedKeys({.unused_since_unix_ms = 7}), ElementsAre(TestKey(2)));
}

TEST_F(CacheContractTest, ListsEntriesWithAllFieldsButTheirToolchainHeaders) {
  Entry entry = EntryOf(1, 1, 5);
  ASSERT_THAT(entry.toolchain_headers, Not(IsEmpty()));
  ASSERT_THAT(index_->Put(entry, {"module", UserId{1000}}), IsOk());
  const auto listed = index_->List({});
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(*listed, SizeIs(1));
  entry.toolchain_headers.clear();
  EXPECT_EQ(listed->front().entry, entry);
}

TEST_F(CacheContractTest, TellsTheInputsOfATagsEntriesMostRecentlyUsedFirst) {
  const Tag mine{"a", UserId{1}};
  const std::vector<BuildInput> inputs = {{InputKind::kSource, "a.cc", DigestOf("1").Raw()},
                                          {InputKind::kFlag, "-O2", ""}};
  Entry entry = EntryOf(1, 1, 5);
  entry.inputs = inputs;
  ASSERT_THAT(index_->Put(entry, mine), IsOk());
  Put(2, 6, mine);
  Put(3, 7, {"a", UserId{2}});
  Put(4, 8, {"b", UserId{1}});
  EXPECT_THAT(*index_->Recent(mine, 9), ElementsAre(BuiltFrom{TestKey(2), {}}, BuiltFrom{TestKey(1), inputs}));
  EXPECT_THAT(*index_->Recent(mine, 1), SizeIs(1));
  EXPECT_THAT(index_->Find(TestKey(1)).value()->inputs, IsEmpty()) << "no hit reads them";

  entry.inputs[1].name = "-O3";
  ASSERT_THAT(index_->Put(entry, mine), IsOk());
  EXPECT_EQ(index_->Recent(mine, 9)->back().inputs, entry.inputs);
  ASSERT_THAT(index_->Remove(TestKey(1), std::nullopt), IsOk());
  Put(1, 9, mine);
  EXPECT_THAT(index_->Recent(mine, 1)->front(), (BuiltFrom{TestKey(1), {}})) << "they leave with their entry";
}

TEST_F(CacheContractTest, KeepsTheTraceOfABuildWithItsEntry) {
  Entry entry = EntryOf(1, 1, 5);
  entry.trace = std::string("bytes\0of it", 11);
  ASSERT_THAT(index_->Put(entry, {"a", UserId{1}}), IsOk());
  Put(2, 6, {"a", UserId{1}});
  EXPECT_EQ(*index_->TraceOf(TestKey(1)), entry.trace);
  EXPECT_EQ(*index_->TraceOf(TestKey(2)), "") << "an entry without a trace";
  EXPECT_EQ(*index_->TraceOf(TestKey(3)), "") << "no entry";
  EXPECT_EQ(index_->Find(TestKey(1)).value()->trace, "") << "no hit reads it";

  entry.trace = "another";
  ASSERT_THAT(index_->Put(entry, {"a", UserId{1}}), IsOk());
  EXPECT_EQ(*index_->TraceOf(TestKey(1)), entry.trace) << "that of the latest build";
  Entry without = entry;
  without.trace.clear();
  ASSERT_THAT(index_->Put(without, {"a", UserId{1}}), IsOk());
  EXPECT_EQ(*index_->TraceOf(TestKey(1)), "") << "not that of an earlier build";
  ASSERT_THAT(index_->Put(entry, {"a", UserId{1}}), IsOk());
  ASSERT_THAT(index_->Remove(TestKey(1), std::nullopt), IsOk());
  Put(1, 9, {"a", UserId{1}});
  EXPECT_EQ(*index_->TraceOf(TestKey(1)), "") << "it leaves with its entry";
}

TEST_F(CacheContractTest, PurgesTagsAndTheEntriesThatHaveNoneLeft) {
  Put(1, 5, {"a", UserId{1}});
  Put(2, 6, {"a", UserId{2}});
  index_->AddTag(TestKey(1), {"b", UserId{1}});
  Flush();
  EXPECT_EQ(index_->Purge({.name = "a", .owner = UserId{3}})->tags, 0u);
  EXPECT_EQ(index_->Purge({.unused_since_unix_ms = 5})->tags, 0u);
  const auto dropped = index_->Purge({.name = "a"});
  ASSERT_THAT(dropped, IsOk());
  EXPECT_EQ(dropped->tags, 2u);
  EXPECT_EQ(dropped->keys.size(), 1u);
  EXPECT_EQ(dropped->bytes, 1000u);
  EXPECT_THAT(dropped->artifacts, ElementsAre(ArtifactOf(2)));
  EXPECT_TRUE(Has(1)) << "known by another name";
  EXPECT_EQ(index_->Purge({})->keys.size(), 1u);
  EXPECT_EQ(index_->holdings().tags, 0u);
  EXPECT_EQ(index_->holdings().bytes(), 0u);
}

TEST_F(CacheContractTest, EvictsTheLeastRecentlyUsedButNeverTheOneToKeep) {
  for (int i = 1; i <= 4; ++i) Put(i, i);
  EXPECT_EQ(index_->Evict({.bytes = 4000}, std::nullopt, kNow)->keys.size(), 0u);
  index_->AddUse(TestKey(1), {"module", UserId{1000}}, 9);
  const auto dropped = index_->Evict({.bytes = 2500}, TestKey(2), kNow);
  ASSERT_THAT(dropped, IsOk());
  EXPECT_EQ(dropped->keys.size(), 2u);
  EXPECT_THAT(dropped->artifacts, ElementsAre(ArtifactOf(3), ArtifactOf(4)));
  EXPECT_TRUE(Has(1));
  EXPECT_TRUE(Has(2));
  EXPECT_EQ(index_->Evict({.bytes = 0}, TestKey(2), kNow)->keys.size(), 1u);
  EXPECT_TRUE(Has(2));
}

constexpr UserId kFew{1};
constexpr UserId kMany{2};

// Entries 1 and 2 are theirs who load few, and oldest; the others are theirs who load many.
TEST_F(CacheContractTest, AFullCacheTakesFromWhoHoldsMost) {
  for (int i = 1; i <= 2; ++i) Put(i, i, {"few", kFew});
  for (int i = 3; i <= 8; ++i) Put(i, i, {"many", kMany});
  const auto dropped = index_->Evict({.bytes = 5500}, TestKey(8), kNow);
  ASSERT_THAT(dropped, IsOk());
  EXPECT_THAT(dropped->keys, ElementsAre(TestKey(3), TestKey(4), TestKey(5)));
  ASSERT_THAT(index_->Evict({.bytes = 1500}, TestKey(8), kNow), IsOk());
  EXPECT_TRUE(Has(8));
  EXPECT_FALSE(Has(1) || Has(2)) << "nothing else can go";
}

TEST_F(CacheContractTest, AUserHasALimitOfTheirOwn) {
  for (int i = 1; i <= 2; ++i) Put(i, i, {"few", kFew});
  for (int i = 3; i <= 6; ++i) Put(i, i, {"many", kMany});
  EXPECT_GE(index_->Holders().value()[kMany].bytes, 4000u);
  const auto dropped = index_->Evict({.bytes = 1 << 20, .bytes_per_user = 2900}, std::nullopt, kNow);
  ASSERT_THAT(dropped, IsOk());
  EXPECT_THAT(dropped->keys, ElementsAre(TestKey(3), TestKey(4)));
  EXPECT_LE(index_->Holders().value()[kMany].bytes, 2900u);
  EXPECT_GE(index_->Holders().value()[kFew].bytes, 2000u);
  EXPECT_TRUE(Has(1) && Has(2));
}

TEST_F(CacheContractTest, WhatOthersHaveLoadedStaysForThem) {
  Put(1, 1, {"many", kMany});
  index_->AddTag(TestKey(1), {"few", kFew});
  for (int i = 2; i <= 4; ++i) Put(i, i, {"many", kMany});
  Flush();
  const auto dropped = index_->Evict({.bytes = 1 << 20, .bytes_per_user = 2900}, std::nullopt, kNow);
  ASSERT_THAT(dropped, IsOk());
  EXPECT_THAT(dropped->keys, ElementsAre(TestKey(2)));
  EXPECT_EQ(dropped->tags, 2u);
  EXPECT_TRUE(Has(1));
  EXPECT_TRUE(index_->HasTagOf(kFew, ArtifactOf(1)).value());
  EXPECT_FALSE(index_->HasTagOf(kMany, ArtifactOf(1)).value());
}

TEST_F(CacheContractTest, WhatAUserHoldsFollowsEachChange) {
  Put(1, 1, {"a", kFew});
  const uint64_t one = index_->Holders().value()[kFew].bytes;
  EXPECT_GE(one, 1000u);
  Put(1, 2, {"a", kFew});
  EXPECT_EQ(index_->Holders().value()[kFew].bytes, one) << "a new build of the same";
  Put(2, 3, {"a", kFew});
  index_->AddTag(TestKey(2), {"a", kMany});
  Flush();
  EXPECT_EQ(index_->Holders().value()[kFew].bytes, 2 * one);
  EXPECT_EQ(index_->Holders().value()[kMany].bytes, one) << "each in full";
  ASSERT_THAT(index_->Remove(TestKey(1), std::nullopt), IsOk());
  EXPECT_EQ(index_->Holders().value()[kFew].bytes, one);
  ASSERT_THAT(index_->Purge({.owner = kFew}), IsOk());
  EXPECT_EQ(index_->Holders().value()[kFew].bytes, 0u);
  EXPECT_EQ(index_->Holders().value()[kMany].bytes, one);
}

TEST_F(CacheContractTest, TotalsAreThoseThatWereWrittenLast) {
  ASSERT_THAT(index_->Flush({0, 2, 3, 4, 5, 6, 7, 8}), IsOk());
  EXPECT_THAT(index_->totals(), ElementsAre(0, 2, 3, 4, 5, 6, 7, 8));
  ASSERT_THAT(index_->Flush({2, 2, 4, 4, 5, 6, 7, 8}), IsOk());
  EXPECT_THAT(index_->totals(), ElementsAre(2, 2, 4, 4, 5, 6, 7, 8));
}

TEST_F(CacheContractTest, KeepsTheEngineThatAnEntryComesFrom) {
  Entry entry = EntryOf(1, 1, 5);
  entry.detail.set_origin("grpc://engine:1");
  ASSERT_THAT(index_->Put(entry, {"module", UserId{1000}}), IsOk());
  const auto found = index_->Find(entry.key);
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->detail.origin(), "grpc://engine:1");
}

TEST_F(CacheContractTest, KeepsKnownFilesByPath) {
  const KnownFile one{"/one", {.size = 1}, DigestOf("1")};
  ASSERT_THAT(index_->SaveKnownFiles({one, {"/two", {}, DigestOf("2")}}), IsOk());
  ASSERT_THAT(index_->SaveKnownFiles({{"/one", {.size = 3}, DigestOf("3")}}), IsOk());
  const auto files = index_->LoadKnownFiles();
  ASSERT_THAT(files, IsOk());
  ASSERT_THAT(*files, SizeIs(2));
  EXPECT_EQ(files->at(0).path, "/one");
  EXPECT_EQ(files->at(0).identity.size, 3u);
  EXPECT_EQ(files->at(0).digest, DigestOf("3"));
  EXPECT_EQ(files->at(1).path, "/two");
}

// --- BlobFolder ------------------------------------------------------------------------------------------------------

TEST_F(CacheContractTest, KeepsBlobs) {
  const Digest digest = DigestOf("content");
  EXPECT_FALSE(*blobs_.IsSound(digest, 7));
  EXPECT_TRUE(absl::IsNotFound(blobs_.Open(digest).status()));
  ASSERT_THAT(blobs_.Put(digest, "content"), IsOk());
  ASSERT_THAT(blobs_.Put(digest, "content"), IsOk());
  EXPECT_TRUE(*blobs_.IsSound(digest, 7));
  EXPECT_FALSE(*blobs_.IsSound(digest, 8));
  EXPECT_EQ(ReadAll(**blobs_.Open(digest)).value(), "content");
}

TEST_F(CacheContractTest, OtherContentThanADigestSaysIsFoundOutAndReplaced) {
  const Digest digest = DigestOf("content");
  // Simulates damage: other content of the same size, at the place of that digest.
  ASSERT_THAT(blobs_.Put(digest, "CONTENT"), IsOk());
  if (!blobs_.PathOf(digest).empty()) {
    ASSERT_THAT(Env::Posix().RemoveFile(blobs_.PathOf(digest)), IsOk());
    ASSERT_THAT(Env::Posix().WriteFile(blobs_.PathOf(digest), "CONTENT", 0444), IsOk());
  }
  EXPECT_FALSE(*blobs_.IsSound(digest, 7));
  EXPECT_TRUE(absl::IsDataLoss(blobs_.Open(digest).status()));
  ASSERT_THAT(blobs_.Put(digest, "content"), IsOk());
  EXPECT_TRUE(*blobs_.IsSound(digest, 7));
}

TEST_F(CacheContractTest, ABlobThatIsOpenStaysReadableWhenItIsRemoved) {
  const Digest digest = DigestOf("content");
  ASSERT_THAT(blobs_.Put(digest, "content"), IsOk());
  const auto blob = blobs_.Open(digest);
  ASSERT_THAT(blob, IsOk());
  ASSERT_THAT(blobs_.Remove(digest), IsOk());
  ASSERT_THAT(blobs_.Remove(digest), IsOk());
  EXPECT_FALSE(*blobs_.IsSound(digest, 7));
  EXPECT_EQ(ReadAll(**blob).value(), "content");
}

TEST_F(CacheContractTest, RemovesAllBlobsButThoseToKeep) {
  for (const char* content : {"a", "b", "c"}) ASSERT_THAT(blobs_.Put(DigestOf(content), content), IsOk());
  ASSERT_THAT(blobs_.RemoveAllBut({DigestOf("b")}), IsOk());
  EXPECT_FALSE(*blobs_.IsSound(DigestOf("a"), 1));
  EXPECT_TRUE(*blobs_.IsSound(DigestOf("b"), 1));
  EXPECT_FALSE(*blobs_.IsSound(DigestOf("c"), 1));
}

}  // namespace
}  // namespace kernix::cache
