// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "daemon/base/error.h"
#include "daemon/base/fault_env.h"
#include "daemon/base/paths.h"
#include "daemon/base/posix_error.h"
#include "daemon/base/test_util.h"
#include "daemon/cache/testing_entries.h"

namespace kernix::cache {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Real files, injected faults, and a clock that the test moves.
class TestEnv : public FaultEnv {
 public:
  TestEnv() : FaultEnv(Env::Posix()) {}
  int64_t UnixMillis() override { return now; }
  MonotonicTime Now() override { return MonotonicTime(Duration(now)); }
  std::atomic<int64_t> now{1'000'000};
};

class CacheTest : public ::testing::Test {
 protected:
  std::string store() const { return folder_ / "store"; }

  void Open(uint64_t limit_bytes = 1 << 30, Duration lend_time = Duration(0)) {
    cache_.reset();
    auto opened = Cache::Open(env_, {store(), limit_bytes, lend_time});
    ASSERT_TRUE(opened.ok()) << opened.status();
    cache_ = *std::move(opened);
  }

  // Each insert is a millisecond younger than the one before.
  void Insert(int i, size_t size = 1000, const std::string& name = "module") {
    ++env_.now;
    const absl::Status status = cache_->Insert(TestEntry(i, name), TestArtifact(i, size));
    ASSERT_TRUE(status.ok()) << status;
  }

  bool Has(int i) {
    const auto entry = cache_->Find(TestKey(i));
    EXPECT_TRUE(entry.ok()) << entry.status();
    return entry.ok() && entry->has_value();
  }

  v1::GetCacheStatsResponse Stats() { return *cache_->Stats(); }

  std::string BlobOf(int i, size_t size = 1000) { return cache_->BlobPath(DigestOf(TestArtifact(i, size))); }

  int FilesInBlobs() { return static_cast<int>(Env::Posix().ListDirectory(JoinPath(store(), "blobs"))->size()); }

  ScratchDirectory folder_;
  TestEnv env_;
  std::unique_ptr<Cache> cache_;
};

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
  EXPECT_EQ(*cache_->ReadBlob((*entry)->artifact), TestArtifact(1));
}

TEST_F(CacheTest, UnknownKeyIsNoEntryAndUnknownBlobIsNotFound) {
  Open();
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(absl::IsNotFound(cache_->ReadBlob(DigestOf("nothing")).status()));
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
  EXPECT_EQ(env_.Stat(Dirname(BlobOf(1)))->mode, 0755u);
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

TEST_F(CacheTest, ListsMostRecentlyUsedFirstAndByName) {
  Open();
  Insert(1, 1000, "a");
  Insert(2, 1000, "b");
  Insert(3, 1000, "a");
  ++env_.now;
  cache_->Touch(TestKey(1), {"a", 1000});
  std::vector<Digest> keys;
  const auto entries = cache_->List(std::nullopt);
  ASSERT_THAT(entries, IsOk());
  for (const Entry& entry : *entries) keys.push_back(entry.key);
  EXPECT_THAT(keys, ElementsAre(TestKey(1), TestKey(3), TestKey(2)));
  EXPECT_EQ(cache_->List("a")->size(), 2u);
  EXPECT_THAT(*cache_->List("c"), IsEmpty());
}

TEST_F(CacheTest, PurgesByNameOwnerAndAge) {
  Open();
  Insert(1, 1000, "a");
  Insert(2, 1000, "b");
  env_.now += 60'000;
  Insert(3, 1000, "a");

  PurgeFilter other_owner;
  other_owner.owner = 77;
  EXPECT_EQ(cache_->Purge(other_owner)->entries, 0u);

  PurgeFilter old_a;
  old_a.name = "a";
  old_a.not_used_for_ms = 30'000;
  const auto purged = cache_->Purge(old_a);
  EXPECT_EQ(purged->entries, 1u);
  EXPECT_EQ(purged->bytes, 1000u);
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(Has(2));
  EXPECT_TRUE(Has(3));

  EXPECT_EQ(cache_->Purge({})->entries, 2u);
  EXPECT_EQ(FilesInBlobs(), 0);
  EXPECT_EQ(Stats().evictions(), 0u);
}

TEST_F(CacheTest, AnArtifactThatWasLoadedUnderTwoNamesCountsUnderEach) {
  Open();
  Insert(1, 1000, "first");
  cache_->Touch(TestKey(1), {"second", 1000});
  cache_->Touch(TestKey(1), {"second", 1000});
  cache_->AddLabel(TestKey(1), {"third", 77});
  EXPECT_EQ(Stats().entries(), 3u);
  const auto second = cache_->List("second");
  ASSERT_THAT(second, IsOk());
  ASSERT_EQ(second->size(), 1u);
  EXPECT_EQ(second->front().label, (Label{"second", 1000}));
  EXPECT_EQ(second->front().hits, 2u);

  PurgeFilter filter;
  filter.name = "second";
  EXPECT_EQ(cache_->Purge(filter)->entries, 1u);
  EXPECT_TRUE(Has(1)) << "others still know it by their names";
  EXPECT_EQ(cache_->Purge(filter)->entries, 0u);
  filter.name = "third";
  filter.owner = 1000;
  EXPECT_EQ(cache_->Purge(filter)->entries, 0u) << "that one is somebody else's";
  filter.owner = 77;
  EXPECT_EQ(cache_->Purge(filter)->bytes, 0u);
  filter = {.name = "first"};
  const auto last = cache_->Purge(filter);
  EXPECT_EQ(last->entries, 1u);
  EXPECT_EQ(last->bytes, 1000u);
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(Stats().entries(), 0u);
  EXPECT_EQ(FilesInBlobs(), 0);
}

TEST_F(CacheTest, NamesSurviveANewBuildOfTheSameKeyAndAReopening) {
  Open();
  Insert(1, 1000, "first");
  cache_->Touch(TestKey(1), {"second", 1000});
  ASSERT_TRUE(cache_->Insert(TestEntry(1, "third"), TestArtifact(2)).ok());
  Open();
  EXPECT_EQ(Stats().entries(), 3u);
  EXPECT_EQ(cache_->List("first")->size(), 1u);
  EXPECT_EQ(cache_->List("second")->size(), 1u);
  EXPECT_EQ(cache_->List("third")->size(), 1u);
}

TEST_F(CacheTest, TheNameOfAKeyThatIsGoneIsForgotten) {
  Open();
  Insert(1);
  ASSERT_THAT(cache_->Remove(TestKey(1)), IsOk());
  cache_->Touch(TestKey(1), {"late", 1000});
  EXPECT_EQ(Stats().entries(), 0u);
  EXPECT_THAT(*cache_->List(std::nullopt), IsEmpty());
}

TEST_F(CacheTest, NobodyCanGiveAKeyNamesWithoutEnd) {
  Open();
  Insert(1);
  for (int i = 0; i < 1500; ++i) cache_->AddLabel(TestKey(1), {StrCat("name ", i), 77});
  EXPECT_EQ(Stats().entries(), 1000u);
}

TEST_F(CacheTest, AgeCountsFromTheLastUse) {
  Open();
  Insert(1);
  env_.now += 60'000;
  cache_->Touch(TestKey(1), {"module", 1000});
  PurgeFilter old;
  old.not_used_for_ms = 30'000;
  EXPECT_EQ(cache_->Purge(old)->entries, 0u);
}

TEST_F(CacheTest, MissingArtifactDropsItsEntry) {
  Open();
  Insert(1);
  ASSERT_TRUE(env_.RemoveFile(BlobOf(1)).ok());
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(Stats().entries(), 0u);
}

TEST_F(CacheTest, DamagedArtifactIsNeverServed) {
  Open();
  Insert(1);
  std::string damaged = TestArtifact(1);
  damaged[500] ^= 1;
  ASSERT_TRUE(env_.RemoveFile(BlobOf(1)).ok());
  ASSERT_TRUE(env_.WriteFile(BlobOf(1), damaged, 0444).ok());
  EXPECT_EQ(KindOf(cache_->ReadBlob(DigestOf(TestArtifact(1))).status()), v1::ErrorDetail::RESOURCE);
  EXPECT_FALSE(Has(1));
  EXPECT_FALSE(env_.Stat(BlobOf(1)).ok());
  Insert(1);
  EXPECT_TRUE(Has(1));
}

TEST_F(CacheTest, DamagedArtifactIsReplacedByTheNextInsertOfTheSame) {
  Open();
  Insert(1);
  ASSERT_TRUE(env_.RemoveFile(BlobOf(1)).ok());
  ASSERT_TRUE(env_.WriteFile(BlobOf(1), std::string(1000, 'x'), 0444).ok());
  Insert(1);
  EXPECT_EQ(*cache_->ReadBlob(DigestOf(TestArtifact(1))), TestArtifact(1));
}

TEST_F(CacheTest, ArtifactThatCannotBeReadJustNowKeepsItsEntry) {
  Open();
  Insert(1);
  for (const Operation operation : {Operation::kReadFile, Operation::kStat}) {
    for (const int error : {EMFILE, EIO}) {
      Open();  // nothing is verified yet, so the file has to be read
      Fault fault;
      fault.operation = operation;
      fault.match = "blobs/";
      fault.error = ErrnoStatus(error, "open", "blobs/");
      env_.Inject(fault);
      const auto found = cache_->Find(TestKey(1));
      EXPECT_EQ(KindOf(found.status()), v1::ErrorDetail::RESOURCE);
      EXPECT_TRUE(Has(1)) << "after error " << error;
      EXPECT_EQ(Stats().entries(), 1u);
      env_.Clear();
    }
  }
  EXPECT_TRUE(env_.Stat(BlobOf(1)).ok());
}

TEST_F(CacheTest, ContentIsReadOnceAndThenRecognisedByItsFingerprint) {
  Open();
  Insert(1);
  Open();
  EXPECT_TRUE(Has(1));
  const int reads = env_.Calls(Operation::kReadFile, "blobs");
  EXPECT_EQ(reads, 1);
  EXPECT_TRUE(Has(1));
  EXPECT_EQ(env_.Calls(Operation::kReadFile, "blobs"), reads);
}

TEST_F(CacheTest, KnownFilesSurviveReopeningAndAreReplacedByPath) {
  Open();
  KnownFile one{"/usr/bin/one", FileInfo{.size = 1, .mtime_ns = 2, .ctime_ns = 3, .inode = 4, .device = 5},
                DigestOf("1")};
  const KnownFile two{"/usr/bin/two", {}, DigestOf("2")};
  ASSERT_THAT(cache_->SaveKnownFiles({one, two}), IsOk());
  one.digest = DigestOf("one");
  ASSERT_THAT(cache_->SaveKnownFiles({one}), IsOk());
  Open();
  const auto files = cache_->LoadKnownFiles();
  ASSERT_THAT(files, IsOk());
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ(files->at(0).path, one.path);
  EXPECT_EQ(files->at(0).digest, DigestOf("one"));
  EXPECT_EQ(files->at(0).info.size, 1u);
  EXPECT_EQ(files->at(0).info.mtime_ns, 2);
  EXPECT_EQ(files->at(0).info.ctime_ns, 3);
  EXPECT_EQ(files->at(0).info.inode, 4u);
  EXPECT_EQ(files->at(0).info.device, 5u);
  EXPECT_EQ(files->at(1).path, two.path);
}

TEST_F(CacheTest, StartRemovesWhatNobodyNames) {
  Open();
  Insert(1);
  const std::string blob = BlobOf(1);
  cache_.reset();
  const std::string stray = JoinPath(Dirname(blob), "half-written.tmp");
  ASSERT_TRUE(env_.WriteFile(stray, "x", 0600).ok());
  const std::string orphan = JoinPath(JoinPath(store(), "blobs"), std::string(64, '0'));
  ASSERT_TRUE(env_.WriteFile(orphan, "x", 0444).ok());
  const std::string scratch = JoinPath(JoinPath(store(), "tmp"), "action-1");
  ASSERT_TRUE(env_.CreateDirectories(scratch, 0700).ok());
  Open();
  EXPECT_EQ(FilesInBlobs(), 1);
  EXPECT_FALSE(env_.Stat(scratch).ok());
  EXPECT_TRUE(env_.Stat(cache_->scratch_directory()).ok());
  EXPECT_TRUE(Has(1));
}

TEST_F(CacheTest, NoSpaceForTheArtifactIsAClearErrorAndChangesNothing) {
  Open();
  Insert(1);
  env_.Inject(NoSpace(Operation::kWriteFileDurably, "blobs"));
  const absl::Status status = cache_->Insert(TestEntry(2), TestArtifact(2));
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(status).message(), AllOf(HasSubstr(store()), HasSubstr("kernixctl cache purge")));
  EXPECT_TRUE(Has(1));
  EXPECT_FALSE(Has(2));
  EXPECT_EQ(Stats().builds(), 1u);
  Insert(2);
  EXPECT_TRUE(Has(2));
}

TEST_F(CacheTest, FailedSyncIsNoSuccessEvenWhenTheFileIsInPlace) {
  Open();
  for (const bool renamed : {false, true}) {
    env_.Clear();
    env_.Inject(FailedSync("blobs", 1, renamed));
    EXPECT_EQ(KindOf(cache_->Insert(TestEntry(1), TestArtifact(1))), v1::ErrorDetail::RESOURCE);
    EXPECT_FALSE(Has(1));
    EXPECT_EQ(FilesInBlobs(), 0);
  }
}

TEST_F(CacheTest, FolderThatCannotBeMadeIsAClearError) {
  env_.Inject(Forbidden(Operation::kCreateDirectories, "store"));
  const auto opened = Cache::Open(env_, {store(), 1000});
  EXPECT_EQ(KindOf(opened.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(opened.status()).message(), AllOf(HasSubstr(store()), HasSubstr("KERNIX_CACHE_DIR")));
}

TEST_F(CacheTest, FileInPlaceOfTheFolderIsAClearError) {
  ASSERT_TRUE(env_.WriteFile(store(), "", 0600).ok());
  const auto opened = Cache::Open(env_, {store(), 1000});
  EXPECT_EQ(KindOf(opened.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(opened.status()).message(), HasSubstr(store()));
}

TEST_F(CacheTest, IndexThatCannotBeOpenedIsAClearError) {
  Open();
  cache_.reset();
  const std::string index = JoinPath(store(), "index.sqlite");
  ASSERT_TRUE(env_.RemoveTree(index).ok());
  ASSERT_TRUE(env_.CreateDirectories(index, 0700).ok());
  const auto opened = Cache::Open(env_, {store(), 1000});
  EXPECT_EQ(KindOf(opened.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(opened.status()).message(), HasSubstr(store()));
}

TEST_F(CacheTest, StoreOfAnotherProcessIsRefusedNamingIt) {
  Open();
  const auto second = Cache::Open(env_, {store(), 1000});
  EXPECT_EQ(KindOf(second.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(GetErrorDetail(second.status()).message(),
              AllOf(HasSubstr(StrCat("process ", ::getpid())), HasSubstr("kernixctl shutdown"), HasSubstr(store())));
  cache_.reset();
  Open();
}

TEST_F(CacheTest, NewerLayoutIsRefusedAndLeftAlone) {
  Open();
  Insert(1);
  cache_.reset();
  ASSERT_TRUE(env_.WriteFile(JoinPath(store(), "version"), "2\n", 0644).ok());
  const auto opened = Cache::Open(env_, {store(), 1000});
  EXPECT_EQ(KindOf(opened.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(opened.status()).message(), HasSubstr("newer kernix"));
  EXPECT_EQ(FilesInBlobs(), 1);
}

TEST_F(CacheTest, FolderWithSomebodyElsesFilesIsRefusedAndLeftAlone) {
  const std::string precious = JoinPath(JoinPath(store(), "tmp"), "precious");
  ASSERT_TRUE(env_.CreateDirectories(Dirname(precious), 0700).ok());
  ASSERT_TRUE(env_.WriteFile(precious, "x", 0600).ok());
  const auto opened = Cache::Open(env_, {store(), 1000});
  EXPECT_EQ(KindOf(opened.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(opened.status()).message(), HasSubstr("no kernix store"));
  EXPECT_TRUE(env_.Stat(precious).ok());
}

TEST_F(CacheTest, DamagedIndexIsMovedAsideAndANewOneStarted) {
  Open();
  Insert(1);
  cache_.reset();
  const std::string index = JoinPath(store(), "index.sqlite");
  for (const char* suffix : {"-wal", "-shm"}) ASSERT_TRUE(env_.RemoveTree(StrCat(index, suffix)).ok());
  const std::string garbage(8192, 'x');
  ASSERT_TRUE(env_.WriteFile(index, garbage, 0600).ok());
  Open();
  EXPECT_FALSE(Has(1));
  Insert(2);
  EXPECT_TRUE(Has(2));
  EXPECT_EQ(*env_.ReadFile(StrCat(index, ".damaged")), garbage);
  EXPECT_EQ(FilesInBlobs(), 1);
}

TEST_F(CacheTest, ThreadsInsertFindAndRemoveTheSameArtifactsAndNothingIsLost) {
  Open(/*limit_bytes=*/20'000);
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
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const auto entries = cache_->List(std::nullopt);
  ASSERT_TRUE(entries.ok());
  for (const Entry& entry : *entries) EXPECT_TRUE(cache_->ReadBlob(entry.artifact).ok());
  EXPECT_EQ(Stats().builds(), uint64_t{kThreads} * kRounds);
  EXPECT_EQ(Stats().hits(), uint64_t{kThreads} * kRounds);
  EXPECT_EQ(Stats().bytes(), 1000u * static_cast<uint64_t>(FilesInBlobs()));
}

}  // namespace
}  // namespace kernix::cache
