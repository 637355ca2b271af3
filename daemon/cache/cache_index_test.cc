// SPDX-License-Identifier: Apache-2.0
//
// The form of a cache's index on disk, and its contents besides the entries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "daemon/cache/index.h"
#include "daemon/cache/index_schema.h"
#include "daemon/cache/sqlite.h"
#include "tests/support/await.h"
#include "tests/support/cache_fixture.h"

namespace kernix::cache {
namespace {

constexpr int64_t kNow = 1'000'000'000;

using ::testing::ElementsAre;

std::string IndexPath(const std::string& store) { return JoinPath(store, "private/index.sqlite"); }

// WAL mode keeps readers and the writer from blocking each other, and limits a commit to one sync.
TEST_F(CacheTest, TheIndexIsInWalMode) {
  Open();
  auto database = Database::Open(IndexPath(store()), 0);
  ASSERT_THAT(database, IsOk());
  std::string mode;
  ASSERT_THAT(database->Prepared("PRAGMA journal_mode").ForEachRow([&](const Statement& row) { mode = row.Text(0); }),
              IsOk());
  EXPECT_EQ(mode, "wal");
}

TEST_F(CacheTest, KnownFilesSurviveReopeningAndAreReplacedByPath) {
  Open();
  KnownFile one{"/usr/bin/one", {.device = 5, .inode = 4, .size = 1, .mtime_ns = 2, .ctime_ns = 3}, DigestOf("1")};
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
  EXPECT_EQ(files->at(0).identity, one.identity);
  EXPECT_EQ(files->at(1).path, two.path);
}

TEST_F(CacheTest, AKnownFileThatCannotBeReadIsForgottenAndTheOthersStay) {
  Open();
  ASSERT_THAT(cache_->SaveKnownFiles({{"/one", {}, DigestOf("1")}, {"/two", {}, DigestOf("2")}}), IsOk());
  auto database = Database::Open(IndexPath(store()), 1000);
  ASSERT_THAT(database, IsOk());
  ASSERT_THAT(database->Execute("UPDATE known_file SET digest = 'short' WHERE path = '/one'"), IsOk());
  const auto files = cache_->LoadKnownFiles();
  ASSERT_THAT(files, IsOk());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(files->at(0).path, "/two");
  EXPECT_EQ(database->QueryInt("SELECT count(*) FROM known_file").value(), 1);
}

// Written by the version that stored wire messages in these rows.
constexpr char kOldDetail[] =
    "08021205736d5f38301205736d5f39301a1f0a0166120361726712037265741a106b65726e69785f68616e646c65725f66220a474c4942435f"
    "322e3334";

TEST_F(CacheTest, ARowOfAnOlderVersionIsReadAndWrittenAlike) {
  Open();
  Insert(1);
  EXPECT_EQ((*cache_->Find(TestKey(1)))->detail.SerializeAsString(), TestEntry(1).detail.SerializeAsString());
  cache_.reset();
  auto database = Database::Open(IndexPath(store()), 1000);
  ASSERT_THAT(database, IsOk());
  ASSERT_THAT(database->Execute(StrCat("UPDATE entry SET detail = x'", kOldDetail, "'")), IsOk());
  Open();
  const auto entry = cache_->Find(TestKey(1));
  ASSERT_TRUE(entry.ok() && entry->has_value());
  EXPECT_EQ((*entry)->detail.language(), v1::LANGUAGE_CUDA);
  EXPECT_THAT((*entry)->detail.architecture(), ElementsAre("sm_80", "sm_90"));
  v1::ResolvedFunction function;
  function.set_name("f");
  function.add_tokens("arg");
  function.add_tokens("ret");
  function.set_handler_symbol("kernix_handler_f");
  ASSERT_EQ((*entry)->detail.function_size(), 1);
  EXPECT_EQ((*entry)->detail.function(0).SerializeAsString(), function.SerializeAsString());
  EXPECT_THAT((*entry)->detail.required_symbol_version(), ElementsAre("GLIBC_2.34"));
  EXPECT_EQ(ToStd(absl::BytesToHexString((*entry)->detail.SerializeAsString())), kOldDetail);
}

TEST_F(CacheTest, ARowThatCannotBeReadHidesNoOther) {
  Open();
  Insert(1);
  Insert(2);
  cache_.reset();
  auto database = Database::Open(IndexPath(store()), 1000);
  ASSERT_THAT(database, IsOk());
  ASSERT_THAT(database->Execute(StrCat("UPDATE entry SET detail = x'ff' WHERE key = x'", TestKey(1).Hex(), "'")),
              IsOk());
  Open();
  const auto listed = cache_->List({});
  ASSERT_THAT(listed, IsOk());
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ((*listed)[0].entry.key, TestKey(2));
}

// Makes every change of tags fail until undone.
class BrokenTags {
 public:
  explicit BrokenTags(const std::string& store) : database_(Database::Open(IndexPath(store), 1000).value()) {
    EXPECT_THAT(database_.Execute("ALTER TABLE tag RENAME TO hidden"), IsOk());
  }
  ~BrokenTags() { EXPECT_THAT(database_.Execute("ALTER TABLE hidden RENAME TO tag"), IsOk()); }

 private:
  Database database_;
};

TEST_F(CacheTest, AFlushThatFailsLosesNothing) {
  Open();
  Insert(1);
  cache_->Touch(TestKey(1), TestTag("used"));
  cache_->AddTag(TestKey(1), TestTag("added"));
  cache_->Count(Total::kMisses, 3);
  {
    const BrokenTags broken(store());
    EXPECT_FALSE(cache_->Flush().ok());
    cache_->Touch(TestKey(1), TestTag("used"));
  }
  ASSERT_THAT(cache_->Flush(), IsOk());
  Open();
  ASSERT_EQ(cache_->List({.name = "used"})->size(), 1u);
  EXPECT_EQ(cache_->List({.name = "used"})->front().hits, 2u);
  EXPECT_EQ(cache_->List({.name = "added"})->size(), 1u);
  EXPECT_EQ(Stats().hits(), 2u);
  EXPECT_EQ(Stats().misses(), 3u);
}

// Else nobody could purge an over-full store on a full disk: that needs a kernixd that has started.
TEST_F(CacheTest, AStoreThatCannotBeFittedToItsLimitStartsAllTheSame) {
  Open();
  Insert(1);
  Insert(2);
  cache_.reset();
  auto database = Database::Open(IndexPath(store()), 1000);
  ASSERT_THAT(database, IsOk());
  ASSERT_THAT(
      database->Execute("CREATE TRIGGER disk_full BEFORE DELETE ON entry BEGIN SELECT raise(FAIL, 'full'); END"),
      IsOk());
  Open(/*limit_bytes=*/1000);
  EXPECT_TRUE(Has(1));
  EXPECT_EQ(Stats().bytes(), 2000u);
  ASSERT_THAT(database->Execute("DROP TRIGGER disk_full"), IsOk());
  Insert(3);
  EXPECT_EQ(Stats().bytes(), 1000u) << "the next one has tried again";
}

class IndexTest : public testing::Test {
 protected:
  IndexTest() {
    EXPECT_THAT(Env::Posix().CreateDirectories(folder_ / "private"), IsOk());
    index_ = Index::Open(path()).value();
  }

  std::string path() const { return IndexPath(folder_.path()); }

  void Put(int i) {
    Entry entry = TestEntry(i);
    entry.artifact = DigestOf(TestArtifact(i));
    entry.size = 1000;
    entry.created_unix_ms = i;
    ASSERT_THAT(index_->Put(entry, TestTag()), IsOk());
  }

  const ScratchDirectory folder_;
  std::shared_ptr<Index> index_;
};

TEST_F(IndexTest, AnEvictionThatFailsLosesNoUses) {
  Put(1);
  Put(2);
  index_->AddUse(TestKey(1), TestTag(), 3);
  {
    const BrokenTags broken(folder_.path());
    EXPECT_FALSE(index_->Evict({.bytes = 1500}, std::nullopt, kNow).ok());
  }
  ASSERT_THAT(index_->Evict({.bytes = 1500}, std::nullopt, kNow), IsOk());
  EXPECT_TRUE(index_->Find(TestKey(1))->has_value()) << "it was used last";
  EXPECT_FALSE(index_->Find(TestKey(2))->has_value());
}

// They are the largest part of an entry, and a list has entries by the thousand.
TEST_F(IndexTest, AListDoesNotReadToolchainHeaders) {
  Put(1);
  auto database = Database::Open(path(), 1000);
  ASSERT_THAT(database, IsOk());
  ASSERT_THAT(database->Execute("UPDATE header_set SET headers = 'damaged'"), IsOk());
  EXPECT_TRUE(absl::IsDataLoss(index_->Find(TestKey(1)).status()));
  EXPECT_THAT(index_->List({}), IsOk());
}

TEST_F(IndexTest, AListOfOneKeyReadsNoOther) {
  Put(1);
  Put(2);
  auto database = Database::Open(path(), 1000);
  ASSERT_THAT(database, IsOk());
  ASSERT_THAT(database->Execute("UPDATE entry SET detail = 'damaged'"), IsOk());
  Put(3);
  for (const size_t digits : {64, 20}) {
    const TagFilter one{.key_prefix = TestKey(3).Hex().substr(0, digits)};
    testing::internal::CaptureStderr();
    EXPECT_EQ(index_->List(one)->size(), 1u);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "another entry was read";
    EXPECT_EQ(index_->Weigh(one)->entries, 1u);
  }
  EXPECT_EQ(index_->Weigh({})->entries, 3u);
  EXPECT_EQ(index_->Weigh({.key_prefix = "no key"})->entries, 0u);
}

TEST_F(IndexTest, LoadsDoNotWaitForAList) {
  for (int i = 0; i < 5; ++i) {
    Put(i);
    for (int tag = 0; tag < 400; ++tag) index_->AddTag(TestKey(i), TestTag(StrCat("tag ", tag)));
  }
  ASSERT_THAT(index_->Flush({}), IsOk());
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  std::atomic<bool> stop = false;
  std::thread lister([&] {
    while (!stop) {
      ++begun;
      EXPECT_EQ(index_->List({})->size(), 2005u);
      ++ended;
    }
  });
  // More than one hit: the first may come between the note that the list has begun and its begin.
  Await("several hits during one list", [&] {
    const int list = begun;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(index_->Find(TestKey(i))->has_value());
    EXPECT_THAT(index_->Recent(TestTag("tag 1"), 1), IsOk());
    return list == begun && list == ended + 1;
  });
  stop = true;
  lister.join();
}

TEST_F(IndexTest, ATagIsKnownWhileItIsBeingWritten) {
  Put(1);
  index_->AddTag(TestKey(1), {"joined", UserId{77}});
  auto other = Database::Open(path(), 1000);
  ASSERT_THAT(other, IsOk());
  std::optional<Transaction> transaction(Transaction::Begin(*other).value());  // the flush waits for it
  std::thread flush([&] { EXPECT_THAT(index_->Flush({}), IsOk()); });
  int unknown = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (std::chrono::steady_clock::now() < end) {
    if (!*index_->HasTagOf(UserId{77}, DigestOf(TestArtifact(1)))) ++unknown;
  }
  transaction.reset();
  flush.join();
  EXPECT_EQ(unknown, 0);
  EXPECT_TRUE(*index_->HasTagOf(UserId{77}, DigestOf(TestArtifact(1))));
}

// --- What it holds counts --------------------------------------------------------------------------------------------

constexpr uint64_t kMiB = 1 << 20;

// An entry whose inputs take a quarter of a megabyte.
Entry LargeEntry(int i) {
  Entry entry = TestEntry(i);
  for (int n = 0; n < 1000; ++n) {
    entry.inputs.push_back({InputKind::kHeader, StrCat(n, std::string(200, 'h')), std::string(32, 'd')});
  }
  return entry;
}

class IndexSizeTest : public CacheTest {
 protected:
  void InsertLarge(int i) {
    ++env_.now;
    ASSERT_THAT(cache_->Insert(LargeEntry(i), TestTag(), TestArtifact(i)), IsOk());
  }

  uint64_t FileBytes() {
    const auto size = [&](const std::string& path) {
      const absl::StatusOr<FileInfo> info = Env::Posix().Stat(path);
      return info.ok() ? info->size : 0;
    };
    return size(IndexPath(store())) + size(IndexPath(store()) + "-wal");
  }
};

TEST_F(IndexSizeTest, ASmallIndexIsFree) {
  Open();
  for (int i = 0; i < 3; ++i) Insert(i);
  EXPECT_EQ(Stats().bytes(), 3000u);
}

TEST_F(IndexSizeTest, WhatEntriesHoldThereIsPartOfTheLimit) {
  Open(4 * kMiB);
  for (int i = 0; i < 60; ++i) InsertLarge(i);
  EXPECT_TRUE(Has(59));
  EXPECT_FALSE(Has(0));
  const v1::GetCacheStatsResponse stats = Stats();
  EXPECT_GT(stats.bytes(), 3 * kMiB);
  EXPECT_LE(stats.bytes(), 4 * kMiB);
  EXPECT_GT(stats.evictions(), 30u);
  EXPECT_LT(FileBytes(), 12 * kMiB);
}

TEST_F(IndexSizeTest, ItIsTheSameAfterReopening) {
  Open();
  for (int i = 0; i < 10; ++i) InsertLarge(i);
  const uint64_t bytes = Stats().bytes();
  Open();
  EXPECT_EQ(Stats().bytes(), bytes);
  Open(kMiB);
  EXPECT_LE(Stats().bytes(), kMiB);
}

TEST_F(IndexSizeTest, TagsAreEvictedWithTheirEntriesBeforeAnotherInsertion) {
  Open(2 * kMiB);
  for (int i = 0; i < 20; ++i) {
    Insert(i);
    for (int n = 0; n < 1000; ++n) cache_->Touch(TestKey(i), TestTag(StrCat(n, std::string(190, 'n'))));
    ASSERT_THAT(cache_->Flush(), IsOk());
  }
  EXPECT_LE(Stats().bytes(), 2 * kMiB);
  EXPECT_LT(Stats().entries(), 15'000u);
  EXPECT_TRUE(Has(19));
}

TEST_F(IndexSizeTest, WhatIsPurgedCountsNoMore) {
  Open();
  for (int i = 0; i < 10; ++i) InsertLarge(i);
  EXPECT_GT(Stats().bytes(), kMiB);
  ASSERT_THAT(cache_->Purge({}), IsOk());
  EXPECT_EQ(Stats().bytes(), 0u);
}

}  // namespace
}  // namespace kernix::cache
