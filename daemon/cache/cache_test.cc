// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/cache_fixture.h"

namespace kernix::cache {
namespace {

TEST_F(CacheTest, FindsWhatWasInsertedWithAllItsFields) {
  Open();
  Insert(1);
  const auto entry = cache_->Find(TestKey(1));
  ASSERT_TRUE(entry.ok() && entry->has_value());
  const Entry expected = TestEntry(1);
  EXPECT_EQ((*entry)->key, expected.key);
  EXPECT_EQ((*entry)->artifact, DigestOf(TestArtifact(1)));
  EXPECT_EQ((*entry)->size, 1000u);
  EXPECT_EQ((*entry)->language, expected.language);
  EXPECT_EQ((*entry)->architectures, expected.architectures);
  ASSERT_EQ((*entry)->functions.size(), 1u);
  EXPECT_EQ((*entry)->functions[0].SerializeAsString(), expected.functions[0].SerializeAsString());
  EXPECT_EQ((*entry)->required_symbol_versions, expected.required_symbol_versions);
  ASSERT_EQ((*entry)->toolchain_headers.size(), 2u);
  EXPECT_EQ((*entry)->toolchain_headers[1].path, expected.toolchain_headers[1].path);
  EXPECT_EQ((*entry)->toolchain_headers[1].digest, expected.toolchain_headers[1].digest);
  EXPECT_EQ((*entry)->created_unix_ms, env_.now);
  EXPECT_EQ((*entry)->hits, 0u);
  EXPECT_EQ(*ReadBlob(*cache_, (*entry)->artifact), TestArtifact(1));
}

TEST_F(CacheTest, UnknownKeyIsNoEntryAndUnknownBlobIsNotFound) {
  Open();
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(absl::IsNotFound(ReadBlob(*cache_, DigestOf("nothing")).status()));
}

TEST_F(CacheTest, SurvivesReopening) {
  Open();
  Insert(1);
  cache_->Touch(TestKey(1), {"module", 1000});
  cache_->Count(Counter::kMisses, 3);
  Open();
  EXPECT_TRUE(Has(1));
  EXPECT_EQ((*cache_->Find(TestKey(1)))->hits, 1u);
  EXPECT_EQ(Stats().builds(), 1u);
  EXPECT_EQ(Stats().hits(), 1u);
  EXPECT_EQ(Stats().misses(), 3u);
  EXPECT_EQ(Stats().entries(), 1u);
  EXPECT_EQ(Stats().bytes(), 1000u);
}

TEST_F(CacheTest, ArtifactFilesCannotBeWrittenButTheirFolderDecidesWhoReads) {
  Open();
  Insert(1);
  EXPECT_EQ(env_.Stat(BlobOf(1))->mode, 0444u);
  EXPECT_EQ(env_.Stat(Dirname(BlobOf(1)))->mode, 0711u) << "can be entered, not listed";
  EXPECT_EQ(env_.Stat(store())->mode, 0700u);
}

TEST_F(CacheTest, EveryCounterHasItsOwnField) {
  Open();
  const Counter counters[] = {Counter::kBuilds,   Counter::kHits,      Counter::kMisses,   Counter::kJoined,
                              Counter::kFailures, Counter::kEvictions, Counter::kCancelled};
  for (size_t i = 0; i < std::size(counters); ++i) cache_->Count(counters[i], i + 1);
  const v1::GetCacheStatsResponse stats = Stats();
  EXPECT_EQ(stats.builds(), 1u);
  EXPECT_EQ(stats.hits(), 2u);
  EXPECT_EQ(stats.misses(), 3u);
  EXPECT_EQ(stats.joined(), 4u);
  EXPECT_EQ(stats.failures(), 5u);
  EXPECT_EQ(stats.evictions(), 6u);
  EXPECT_EQ(stats.cancelled(), 7u);
  EXPECT_EQ(stats.store_directory(), store());
}

TEST_F(CacheTest, EvictsTheLeastRecentlyUsed) {
  Open(/*limit_bytes=*/3000);
  Insert(1);
  Insert(2);
  Insert(3);
  ++env_.now;
  cache_->Touch(TestKey(1), {"module", 1000});
  Insert(4);
  EXPECT_TRUE(Has(1));
  EXPECT_FALSE(Has(2));
  EXPECT_TRUE(Has(3));
  EXPECT_TRUE(Has(4));
  EXPECT_EQ(Stats().evictions(), 1u);
  EXPECT_EQ(Stats().bytes(), 3000u);
  EXPECT_FALSE(env_.Stat(BlobOf(2)).ok());
}

TEST_F(CacheTest, NeverEvictsTheEntryJustMade) {
  Open(/*limit_bytes=*/3000);
  Insert(1);
  Insert(2, /*size=*/10'000);
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(Has(2));
  EXPECT_EQ(Stats().entries(), 1u);
}

TEST_F(CacheTest, ALowerLimitTakesEffectAtTheNextStart) {
  Open();
  for (int i = 0; i < 5; ++i) Insert(i);
  Open(/*limit_bytes=*/2500);
  EXPECT_FALSE(Has(2));
  EXPECT_TRUE(Has(3));
  EXPECT_TRUE(Has(4));
  EXPECT_EQ(FilesInBlobs(), 2);
}

TEST_F(CacheTest, AnArtifactThatWasJustGivenOutStaysForTheClientToOpen) {
  Open(/*limit_bytes=*/1 << 30, /*lend_time=*/Duration(1'000));
  Insert(1);
  Insert(2);
  env_.now += 900;
  EXPECT_TRUE(Has(2));
  EXPECT_EQ(cache_->Purge({})->entries, 2u);
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(FilesInBlobs(), 2);
  env_.now += 200;
  ASSERT_THAT(cache_->Flush(), IsOk());
  EXPECT_FALSE(env_.Stat(BlobOf(1)).ok()) << "nobody asked for it since it was made";
  EXPECT_TRUE(env_.Stat(BlobOf(2)).ok());
  Insert(2);  // and is named again
  env_.now += 2'000;
  ASSERT_THAT(cache_->Flush(), IsOk());
  EXPECT_TRUE(Has(2));
}

TEST_F(CacheTest, SharedArtifactIsCountedOnceAndLivesAsLongAsOneEntryNamesIt) {
  Open();
  const std::string artifact = TestArtifact(7);
  ASSERT_TRUE(cache_->Insert(TestEntry(1), artifact).ok());
  ASSERT_TRUE(cache_->Insert(TestEntry(2), artifact).ok());
  EXPECT_EQ(Stats().bytes(), 1000u);
  ASSERT_TRUE(cache_->Remove(TestKey(1)).ok());
  EXPECT_TRUE(Has(2));
  ASSERT_TRUE(cache_->Remove(TestKey(2)).ok());
  EXPECT_EQ(FilesInBlobs(), 0);
  EXPECT_EQ(Stats().bytes(), 0u);
}

TEST_F(CacheTest, InsertingAKeyAgainReplacesItsArtifact) {
  Open();
  Insert(1);
  ASSERT_TRUE(cache_->Insert(TestEntry(1), TestArtifact(2, 500)).ok());
  EXPECT_EQ((*cache_->Find(TestKey(1)))->artifact, DigestOf(TestArtifact(2, 500)));
  EXPECT_EQ(Stats().entries(), 1u);
  EXPECT_EQ(Stats().bytes(), 500u);
  EXPECT_EQ(Stats().builds(), 2u);
  EXPECT_EQ(Stats().evictions(), 0u);
  EXPECT_EQ(FilesInBlobs(), 1);
}

TEST_F(CacheTest, InsertingTheSameAgainKeepsTheFile) {
  Open();
  Insert(1);
  const uint64_t inode = env_.Stat(BlobOf(1))->inode;
  Insert(1);
  EXPECT_EQ(env_.Stat(BlobOf(1))->inode, inode);
  EXPECT_TRUE(Has(1));
  EXPECT_EQ(Stats().bytes(), 1000u);
}

TEST_F(CacheTest, ContentIsReadOnceAndThenRecognisedByItsFingerprint) {
  Open();
  Insert(1);
  Open();
  EXPECT_TRUE(Has(1));
  const int reads = env_.Calls(Operation::kOpenFile, "artifacts");
  EXPECT_EQ(reads, 1);
  EXPECT_TRUE(Has(1));
  EXPECT_EQ(env_.Calls(Operation::kOpenFile, "artifacts"), reads);
}

// With artifacts that stay where they are for a moment after they were given out, and without.
class CacheThreadsTest : public CacheTest, public ::testing::WithParamInterface<Duration> {};

INSTANTIATE_TEST_SUITE_P(LendTimes, CacheThreadsTest, ::testing::Values(Duration(0), Duration(5)));

TEST_P(CacheThreadsTest, InsertFindAndRemoveTheSameArtifactsAndNothingIsLost) {
  Open(/*limit_bytes=*/20'000, GetParam());
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const int i = (round * 7 + t) % 10;  // ten keys, five artifacts
        const std::string artifact = TestArtifact(i % 5);
        if (!cache_->Insert(TestEntry(i), artifact).ok()) ++wrong;
        const auto found = cache_->Find(TestKey(i));
        if (!found.ok() || (found->has_value() && (*found)->artifact != DigestOf(artifact))) ++wrong;
        cache_->Touch(TestKey(i), {"module", 1000});
        if (round % 3 == 0 && !cache_->Remove(TestKey((i + 5) % 10)).ok()) ++wrong;
        ++env_.now;
        if (round % 7 == 0 && !cache_->Flush().ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  env_.now += 1'000;
  ASSERT_THAT(cache_->Flush(), IsOk());
  const auto entries = cache_->List({});
  ASSERT_TRUE(entries.ok());
  for (const Entry& entry : *entries) EXPECT_TRUE(ReadBlob(*cache_, entry.artifact).ok());
  EXPECT_EQ(Stats().builds(), uint64_t{kThreads} * kRounds);
  EXPECT_EQ(Stats().hits(), uint64_t{kThreads} * kRounds);
  EXPECT_EQ(Stats().bytes(), 1000u * static_cast<uint64_t>(FilesInBlobs()));
}

}  // namespace
}  // namespace kernix::cache
