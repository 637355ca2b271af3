// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/support/cache_fixture.h"
#include "tests/support/need_right.h"

namespace kernix::cache {
namespace {

TEST_F(CacheTest, FindsWhatWasInsertedWithAllItsFields) {
  Open();
  Insert(1);
  const auto entry = cache_->Find(TestKey(1));
  Entry expected = TestEntry(1);
  expected.artifact = DigestOf(TestArtifact(1));
  expected.size = 1000;
  expected.created_unix_ms = env_.now;
  ASSERT_THAT(entry, IsOk());
  EXPECT_EQ(*entry, expected);
  EXPECT_EQ(*ReadBlob(*cache_, (*entry)->artifact), TestArtifact(1));
}

TEST_F(CacheTest, ATraceIsMadeOnceTheArtifactIsThereAndSurvivesReopening) {
  Open();
  bool was_there = false;
  const auto make_trace = [&] {
    was_there = Env::Posix().Stat(BlobOf(1)).ok();
    v1::BuildTrace trace;
    trace.set_total_us(77);
    return trace;
  };
  ASSERT_TRUE(cache_->Insert(TestEntry(1), TestTag("module"), TestArtifact(1), make_trace).ok());
  EXPECT_TRUE(was_there);
  Insert(2);
  Open();
  EXPECT_EQ((*cache_->TraceOf(TestKey(1)))->total_us(), 77u);
  EXPECT_FALSE(cache_->TraceOf(TestKey(2))->has_value());
  ASSERT_TRUE(cache_->Remove(TestKey(1)).ok());
  EXPECT_FALSE(cache_->TraceOf(TestKey(1))->has_value());
}

TEST_F(CacheTest, UnknownKeyIsNoEntryAndUnknownBlobIsNotFound) {
  Open();
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(absl::IsNotFound(ReadBlob(*cache_, DigestOf("nothing")).status()));
}

TEST_F(CacheTest, SurvivesReopening) {
  Open();
  Insert(1);
  cache_->Touch(TestKey(1), {"module", UserId{1000}});
  cache_->Count(Total::kMisses, 3);
  Open();
  EXPECT_TRUE(Has(1));
  EXPECT_EQ(cache_->List({})->front().hits, 1u);
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

TEST_F(CacheTest, EveryTotalHasItsOwnField) {
  Open();
  for (size_t i = 0; i < kTotalCount; ++i) cache_->Count(static_cast<Total>(i), i + 1);
  const v1::GetCacheStatsResponse stats = Stats();
  EXPECT_EQ(stats.builds(), 1u);
  EXPECT_EQ(stats.hits(), 2u);
  EXPECT_EQ(stats.misses(), 3u);
  EXPECT_EQ(stats.joined(), 4u);
  EXPECT_EQ(stats.failures(), 5u);
  EXPECT_EQ(stats.evictions(), 6u);
  EXPECT_EQ(stats.cancelled(), 7u);
}

TEST_F(CacheTest, EvictsTheLeastRecentlyUsed) {
  Open(/*limit_bytes=*/3000);
  Insert(1);
  Insert(2);
  Insert(3);
  ++env_.now;
  cache_->Touch(TestKey(1), {"module", UserId{1000}});
  Insert(4);
  EXPECT_TRUE(Has(1));
  EXPECT_FALSE(Has(2));
  EXPECT_TRUE(Has(3));
  EXPECT_TRUE(Has(4));
  EXPECT_EQ(Stats().evictions(), 1u);
  EXPECT_EQ(Stats().bytes(), 3000u);
  EXPECT_FALSE(env_.Stat(BlobOf(2)).ok());
}

TEST_F(CacheTest, WhatWasUsedWhileTheClockWasAheadIsEvictedToo) {
  Open(/*limit_bytes=*/2000);
  env_.now += 100'000'000;
  Insert(1);
  env_.now -= 100'000'000;
  for (int i = 2; i < 4; ++i) Insert(i);
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(Has(2) && Has(3));
}

TEST_F(CacheTest, WhoLoadsManyPushesOutOnlyTheirOwn) {
  Open(/*limit_bytes=*/1 << 20);
  cache_->SetLimits({.bytes = 1 << 20, .bytes_per_user = 4000});
  ASSERT_THAT(cache_->Insert(TestEntry(0), {"module", UserId{7}}, TestArtifact(0)), IsOk());
  for (int i = 1; i < 9; ++i) Insert(i);
  EXPECT_TRUE(Has(0) && Has(8));
  EXPECT_FALSE(Has(1));
  EXPECT_LE(cache_->Holders().value()[UserId{1000}].bytes, 4000u);
}

TEST_F(CacheTest, AUserWhoUsesWhatOthersBuildKeepsTheirLimit) {
  Open(/*limit_bytes=*/1 << 20);
  for (int i = 0; i < 6; ++i) Insert(i);
  cache_->SetLimits({.bytes = 1 << 20, .bytes_per_user = 9000});
  for (int i = 0; i < 6; ++i) cache_->Touch(TestKey(i), {"module", UserId{7}});
  cache_->SetLimits({.bytes = 1 << 20, .bytes_per_user = 4000});
  ASSERT_THAT(cache_->Flush(), IsOk());
  EXPECT_LE(cache_->Holders().value()[UserId{7}].bytes, 4000u);
  EXPECT_LE(cache_->Holders().value()[UserId{1000}].bytes, 4000u);
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
  EXPECT_EQ(cache_->Purge({})->tags, 2u);
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
  ASSERT_TRUE(cache_->Insert(TestEntry(1), TestTag(), artifact).ok());
  ASSERT_TRUE(cache_->Insert(TestEntry(2), TestTag(), artifact).ok());
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
  ASSERT_TRUE(cache_->Insert(TestEntry(1), TestTag(), TestArtifact(2, 500)).ok());
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

TEST_F(CacheTest, AnArtifactStaysWhileAnEntryThatWillNameItIsOnItsWay) {
  Open();
  ASSERT_THAT(cache_->Insert(TestEntry(1), TestTag(), TestArtifact(7)), IsOk());
  // Once the second insertion has found the artifact, which is there already.
  const MakeTrace remove_first = [this] {
    EXPECT_THAT(cache_->Remove(TestKey(1)), IsOk());
    return v1::BuildTrace();
  };
  ASSERT_THAT(cache_->Insert(TestEntry(2), TestTag(), TestArtifact(7), remove_first), IsOk());
  EXPECT_THAT(ReadBlob(*cache_, DigestOf(TestArtifact(7))), IsOk());
  EXPECT_TRUE(cache_->Find(TestKey(2))->has_value());
}

// With artifacts that stay for a moment after they are given out, and without.
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
        if (!cache_->Insert(TestEntry(i), TestTag(), artifact).ok()) ++wrong;
        const auto found = cache_->Find(TestKey(i));
        if (!found.ok() || (found->has_value() && (*found)->artifact != DigestOf(artifact))) ++wrong;
        cache_->Touch(TestKey(i), {"module", UserId{1000}});
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
  for (const ListedEntry& listed : *entries) EXPECT_TRUE(ReadBlob(*cache_, listed.entry.artifact).ok());
  EXPECT_EQ(Stats().builds(), uint64_t{kThreads} * kRounds);
  EXPECT_EQ(Stats().hits(), uint64_t{kThreads} * kRounds);
  EXPECT_EQ(Stats().bytes(), 1000u * static_cast<uint64_t>(FilesInBlobs()));
}

TEST_F(CacheTest, AnEntryChangesAlone) {
  Open(3'500);
  Insert(1);
  Insert(2);
  const uint64_t one = cache_->changes(TestKey(1)), two = cache_->changes(TestKey(2));
  const auto lend = [&](int i, uint64_t changes) {
    return cache_->LendAgain(TestKey(i), DigestOf(TestArtifact(i)), 1000, changes, UserId{1});
  };
  Insert(3);
  EXPECT_TRUE(lend(1, one) && lend(2, two)) << "another entry is new";
  cache_->Touch(TestKey(2), TestTag());
  Insert(4);  // evicts the first
  EXPECT_FALSE(Has(1));
  EXPECT_FALSE(lend(1, one));
  EXPECT_TRUE(lend(2, two)) << "another entry was evicted";
  Insert(2);
  EXPECT_FALSE(lend(2, two)) << "it was made anew";
  const uint64_t again = cache_->changes(TestKey(2));
  ASSERT_THAT(cache_->Purge({}), IsOk());
  EXPECT_FALSE(lend(2, again));
}

TEST_F(CacheTest, WhatOthersSeeOfAStoreIsItsVersionAndTheArtifactsThatTheyKnowOf) {
  KERNIX_NEED_ROOT("only root can become somebody else");
  const mode_t before = umask(0022);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_THAT(env_.CreateDirectories(store(), 0755), IsOk());
  Open();
  Insert(1);
  umask(before);
  const std::string artifact = BlobOf(1);
  const std::string artifacts = Dirname(artifact);
  const std::string hidden[] = {JoinPath(store(), "private/index.sqlite"),
                                JoinPath(store(), "private/index.sqlite-wal"),
                                JoinPath(store(), "private/index.sqlite-shm"), JoinPath(store(), "private/lock"),
                                JoinPath(store(), "private/tmp")};
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    if (access(artifact.c_str(), R_OK) != 0) _exit(2);
    if (access(artifacts.c_str(), R_OK) == 0) _exit(3);
    for (const std::string& path : hidden) {
      if (access(path.c_str(), F_OK) == 0) _exit(4);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace kernix::cache
