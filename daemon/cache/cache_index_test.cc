// SPDX-License-Identifier: Apache-2.0
//
// What the index of a cache is on disk, and what it keeps beside the entries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/cache/sqlite.h"
#include "tests/support/cache_fixture.h"

namespace kernix::cache {
namespace {

std::string IndexPath(const std::string& store) { return JoinPath(store, "private/index.sqlite"); }

// What keeps readers and the writer out of each other's way, and a commit to one sync.
TEST_F(CacheTest, TheIndexIsInWalMode) {
  Open();
  auto database = Database::Open(IndexPath(store()), 0);
  ASSERT_THAT(database, IsOk());
  auto mode = database->Prepare("PRAGMA journal_mode");
  ASSERT_THAT(mode, IsOk());
  ASSERT_TRUE(mode->Step().value());
  EXPECT_EQ(mode->Text(0), "wal");
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

}  // namespace
}  // namespace kernix::cache
