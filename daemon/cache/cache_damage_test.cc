// SPDX-License-Identifier: Apache-2.0
//
// A cache on damaged files, on failing disks, and on folders that are not stores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/error.h"
#include "common/os/posix_error.h"
#include "tests/support/cache_fixture.h"

namespace kernix::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  EXPECT_EQ(KindOf(ReadBlob(*cache_, DigestOf(TestArtifact(1))).status()), v1::ErrorDetail::RESOURCE);
  EXPECT_FALSE(Has(1));
  EXPECT_FALSE(env_.Stat(BlobOf(1)).ok());
  Insert(1);
  EXPECT_TRUE(Has(1));
}

TEST_F(CacheTest, WhatIsBeingReadStaysThoughItsEntryAndFileGo) {
  Open();
  Insert(1);
  const auto file = cache_->OpenBlob(DigestOf(TestArtifact(1)));
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT(cache_->Purge({}), IsOk());
  EXPECT_EQ(FilesInBlobs(), 0);
  std::string content(2000, '\0');
  EXPECT_EQ((*file)->ReadAt(0, content).value(), 1000u);
  content.resize(1000);
  EXPECT_EQ(content, TestArtifact(1));
}

TEST_F(CacheTest, DamagedArtifactIsReplacedByTheNextInsertOfTheSame) {
  Open();
  Insert(1);
  ASSERT_TRUE(env_.RemoveFile(BlobOf(1)).ok());
  ASSERT_TRUE(env_.WriteFile(BlobOf(1), std::string(1000, 'x'), 0444).ok());
  Insert(1);
  EXPECT_EQ(*ReadBlob(*cache_, DigestOf(TestArtifact(1))), TestArtifact(1));
}

TEST_F(CacheTest, ArtifactThatCannotBeReadJustNowKeepsItsEntry) {
  Open();
  Insert(1);
  for (const Operation operation : {Operation::kOpenFile, Operation::kStat}) {
    for (const int error : {EMFILE, EIO}) {
      Open();  // nothing is verified yet, so the file must be read
      Fault fault;
      fault.operation = operation;
      fault.match = "artifacts/";
      fault.error = ErrnoStatus(error, "open", "artifacts/");
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

TEST_F(CacheTest, StartRemovesWhatNobodyNames) {
  Open();
  Insert(1);
  const std::string blob = BlobOf(1);
  cache_.reset();
  const std::string stray = JoinPath(Dirname(blob), "half-written.tmp");
  ASSERT_TRUE(env_.WriteFile(stray, "x", 0600).ok());
  const std::string orphan = JoinPath(JoinPath(store(), "artifacts"), std::string(64, '0') + ".so");
  ASSERT_TRUE(env_.WriteFile(orphan, "x", 0444).ok());
  const std::string scratch = JoinPath(store(), "private/tmp/action-1");
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
  env_.Inject(NoSpace(Operation::kWriteFileDurably, "artifacts"));
  const absl::Status status = cache_->Insert(TestEntry(2), TestTag(), TestArtifact(2));
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
    env_.Inject(FailedSync("artifacts", 1, renamed));
    EXPECT_EQ(KindOf(cache_->Insert(TestEntry(1), TestTag(), TestArtifact(1))), v1::ErrorDetail::RESOURCE);
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
  const std::string index = JoinPath(store(), "private/index.sqlite");
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

TEST_F(CacheTest, StoresOfAnotherKernixAreRefusedAndLeftAlone) {
  Open();
  Insert(1);
  cache_.reset();
  const std::string version = JoinPath(store(), "version");
  for (const char* another : {"0\n", "2\n", "3\n"}) {
    ASSERT_THAT(env_.WriteFile(version, another, 0644), IsOk());
    const auto opened = Cache::Open(env_, {store(), 1000});
    EXPECT_EQ(KindOf(opened.status()), v1::ErrorDetail::RESOURCE);
    EXPECT_THAT(GetErrorDetail(opened.status()).message(),
                AllOf(HasSubstr("another kernix made it"), HasSubstr("remove its folder"), HasSubstr(store())));
    EXPECT_EQ(FilesInBlobs(), 1);
  }
  ASSERT_THAT(env_.WriteFile(version, "1\n", 0644), IsOk());
  Open();
  EXPECT_TRUE(Has(1));
}

TEST_F(CacheTest, FolderWithSomebodyElsesFilesIsRefusedAndLeftAlone) {
  for (const char* name : {"private/precious", "artifacts/precious"}) {
    const std::string precious = JoinPath(store(), name);
    ASSERT_TRUE(env_.CreateDirectories(Dirname(precious), 0700).ok());
    ASSERT_TRUE(env_.WriteFile(precious, "x", 0600).ok());
    const auto opened = Cache::Open(env_, {store(), 1000});
    EXPECT_EQ(KindOf(opened.status()), v1::ErrorDetail::RESOURCE);
    EXPECT_THAT(GetErrorDetail(opened.status()).message(), HasSubstr("not a kernix store"));
    EXPECT_FALSE(env_.Stat(JoinPath(store(), "version")).ok());
    EXPECT_TRUE(env_.Stat(precious).ok());
    ASSERT_TRUE(env_.RemoveTree(store()).ok());
  }
}

TEST_F(CacheTest, MissesEachPartOfItsStoreAndIsMadeAnewByTheNext) {
  for (const char* part : {"", "version", "artifacts", "private", "private/lock", "private/owner", "private/tmp",
                           "private/index.sqlite", "private/index.sqlite-wal"}) {
    Open();
    Insert(1);
    EXPECT_EQ(cache_->FirstLost(), "") << part;
    const std::string path = *part == '\0' ? store() : JoinPath(store(), part);
    ASSERT_TRUE(env_.RemoveTree(path).ok());
    EXPECT_EQ(cache_->FirstLost().substr(0, path.size()), path);
    Open();
    EXPECT_EQ(cache_->FirstLost(), "");
    if (!Has(1)) Insert(1);
    EXPECT_TRUE(Env::Posix().Stat(BlobOf(1)).ok()) << part;
  }
}

TEST_F(CacheTest, VersionAloneRemovedLosesNoEntry) {
  Open();
  Insert(1);
  ASSERT_TRUE(env_.RemoveTree(JoinPath(store(), "version")).ok());
  Open();
  EXPECT_TRUE(Has(1));
}

TEST_F(CacheTest, RemovesNothingFromTheStoreThatIsAtItsPlaceNow) {
  Open(1 << 30, Duration(10));
  Insert(1);
  ASSERT_TRUE(env_.Rename(JoinPath(store(), "private"), folder_ / "moved").ok());
  ASSERT_TRUE(cache_->Remove(TestKey(1)).ok());
  env_.now += 1000;
  ASSERT_TRUE(cache_->Flush().ok());
  EXPECT_TRUE(Env::Posix().Stat(BlobOf(1)).ok());
}

// An index and its copy, while no cache is open.
class IndexCopyTest : public CacheTest {
 protected:
  std::string Index() const { return JoinPath(store(), "private/index.sqlite"); }
  std::string Copy() const { return StrCat(Index(), ".copy"); }

  // A store with two entries; its end makes a copy.
  void SetUp() override {
    Open();
    Insert(1);
    Insert(2);
    cache_.reset();
    ASSERT_THAT(env_.Stat(Copy()), IsOk());
  }

  void Damage(const std::string& path) { ASSERT_THAT(env_.WriteFile(path, kGarbage, 0600), IsOk()); }

  const std::string kGarbage = std::string(8192, 'x');
};

TEST_F(IndexCopyTest, ADamagedIndexIsMovedAsideAndItsCopyTaken) {
  Damage(Index());
  Open();
  EXPECT_TRUE(Has(1) && Has(2));
  EXPECT_EQ(Stats().builds(), 2u);
  EXPECT_EQ(*env_.ReadFile(StrCat(Index(), ".damaged")), kGarbage);
  Insert(3);
  EXPECT_TRUE(Has(3));
}

TEST_F(IndexCopyTest, ALostIndexIsReplacedByItsCopy) {
  ASSERT_THAT(env_.RemoveFile(Index()), IsOk());
  Open();
  EXPECT_TRUE(Has(1) && Has(2));
  EXPECT_EQ(FilesInBlobs(), 2);
}

TEST_F(IndexCopyTest, ACopyThatWasUsedIsThereForTheNextTime) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(env_.RemoveFile(Index()), IsOk());
    Open();
    EXPECT_TRUE(Has(1) && Has(2));
    cache_.reset();
  }
}

TEST_F(IndexCopyTest, AnIndexWithoutACopyGetsOneThoughItHasNotChanged) {
  ASSERT_THAT(env_.RemoveFile(Copy()), IsOk());
  Open();
  cache_.reset();
  EXPECT_THAT(env_.Stat(Copy()), IsOk());
}

TEST_F(IndexCopyTest, ADamagedIndexIsKeptThoughItsCopyIsDamagedToo) {
  const std::string index(8192, 'i');
  ASSERT_THAT(env_.WriteFile(Index(), index, 0600), IsOk());
  Damage(Copy());
  Open();
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(*env_.ReadFile(StrCat(Index(), ".damaged")), index);
}

TEST_F(IndexCopyTest, EntriesOfACopyWhoseFilesHaveGoneSinceThenGoToo) {
  Open();
  const std::string blob = BlobOf(2);
  cache_.reset();
  ASSERT_THAT(env_.RemoveFile(Index()), IsOk());
  ASSERT_THAT(env_.RemoveFile(blob), IsOk());
  Open();
  EXPECT_EQ(Stats().entries(), 1u);
  EXPECT_EQ(Stats().bytes(), 1000u);
  EXPECT_TRUE(Has(1));
}

TEST_F(IndexCopyTest, WithoutACopyTheStoreStartsEmpty) {
  for (const bool damaged : {false, true}) {
    Damage(Index());
    ASSERT_THAT(env_.RemoveFile(Copy()), IsOk());
    if (damaged) Damage(Copy());
    Open();
    EXPECT_FALSE(Has(1));
    EXPECT_EQ(FilesInBlobs(), 0);
    Insert(1);
    EXPECT_TRUE(Has(1));
    cache_.reset();
  }
}

TEST_F(IndexCopyTest, AnIndexThatAPowerFailureHasLeftEmptyBesideItsLogIsReplacedByItsCopy) {
  Open();
  Insert(3);
  const std::string log = *env_.ReadFile(StrCat(Index(), "-wal"));
  ASSERT_GT(log.size(), 0u);
  cache_.reset();
  ASSERT_THAT(env_.WriteFile(Index(), "", 0600), IsOk());
  ASSERT_THAT(env_.WriteFile(StrCat(Index(), "-wal"), log, 0600), IsOk());
  Open();
  EXPECT_TRUE(Has(1) && Has(3));
}

TEST_F(IndexCopyTest, AnIndexThatHasChangedIsCopiedOnceAnHour) {
  Open();
  const auto copies = [&] { return env_.Calls(Operation::kRename, Copy()); };
  const int before = copies();
  env_.now += 3'600'000;
  cache_->CopyIndexIfDue();
  EXPECT_EQ(copies(), before) << "nothing has changed";
  Insert(3);
  cache_->CopyIndexIfDue();
  EXPECT_EQ(copies(), before);
  env_.now += 3'600'000;
  cache_->CopyIndexIfDue();
  EXPECT_EQ(copies(), before + 1);
}

TEST_F(IndexCopyTest, ACopyThatFailsLeavesTheLastOne) {
  Open();
  Insert(3);
  env_.Inject(NoSpace(Operation::kRename, "index.sqlite.copy"));
  cache_.reset();
  EXPECT_EQ(env_.Hits(), 1);
  EXPECT_FALSE(env_.Stat(StrCat(Copy(), ".tmp")).ok());
  ASSERT_THAT(env_.RemoveFile(Index()), IsOk());
  Open();
  EXPECT_TRUE(Has(1));
  EXPECT_FALSE(Has(3)) << "it is younger than the copy";
}

}  // namespace
}  // namespace kernix::cache
