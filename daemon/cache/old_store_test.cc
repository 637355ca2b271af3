// SPDX-License-Identifier: Apache-2.0
//
// Stores of layout 1 become stores of layout 2, whatever happens on the way.
#include "daemon/cache/old_store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "common/base/error.h"
#include "tests/support/cache_fixture.h"
#include "tests/support/need_right.h"

namespace kernix::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OldStoreTest : public CacheTest {
 protected:
  // The state that an older kernixd leaves when killed: part of what it committed is only in the index's log.
  void MakeOldStore() {
    if (const pid_t child = fork(); child == 0) {
      auto cache = Cache::Open(Env::Posix(), {store(), 1 << 30});
      bool good = cache.ok();
      for (int i = 1; good && i <= kEntries; ++i) {
        good = (*cache)->Insert(TestEntry(i), TestTag(), TestArtifact(i)).ok();
      }
      _exit(good ? 0 : 1);
    } else {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0);
    }
    Env& env = Env::Posix();
    ASSERT_TRUE(env.Stat(In("private/index.sqlite-wal")).ok());
    for (const char* name : {"index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "lock", "owner", "tmp"}) {
      ASSERT_THAT(env.Rename(In(StrCat("private/", name)), In(name)), IsOk());
    }
    ASSERT_THAT(env.CreateDirectories(In("blobs")), IsOk());
    for (int i = 1; i <= kEntries; ++i) {
      const std::string hex = DigestOf(TestArtifact(i)).Hex();
      ASSERT_THAT(env.Rename(In(StrCat("artifacts/", hex, ".so")), In(StrCat("blobs/", hex))), IsOk());
    }
    ASSERT_THAT(env.RemoveTree(In("artifacts")), IsOk());
    ASSERT_THAT(env.RemoveTree(In("private")), IsOk());
    ASSERT_THAT(env.WriteFile(In("version"), "1\n", 0644), IsOk());
  }

  std::string In(const std::string& name) const { return JoinPath(store(), name); }

  std::vector<std::string> NamesInStore() const { return Env::Posix().ListDirectory(store()).value(); }

  void ExpectAllThere() {
    for (int i = 1; i <= kEntries; ++i) EXPECT_TRUE(Has(i)) << i;
    EXPECT_EQ(Stats().entries, uint64_t{kEntries});
    EXPECT_EQ(Stats().builds, uint64_t{kEntries});
    EXPECT_THAT(NamesInStore(), testing::ElementsAre("artifacts", "private", "version"));
  }

  static constexpr int kEntries = 5;
};

TEST_F(OldStoreTest, IsTakenOverWithItsEntries) {
  MakeOldStore();
  const std::string old_path = In(StrCat("blobs/", DigestOf(TestArtifact(1)).Hex()));
  const uint64_t inode = env_.Stat(old_path)->inode;
  const uint64_t old_index = env_.Stat(In("index.sqlite"))->inode;
  Open();
  ExpectAllThere();
  EXPECT_EQ(env_.Stat(BlobOf(1))->inode, inode) << "clients may have it open";
  EXPECT_NE(env_.Stat(In("private/index.sqlite"))->inode, old_index) << "others may hold locks on that file";
  Open();
  ExpectAllThere();
}

TEST_F(OldStoreTest, OneThatAnOlderKernixdServesIsLeftAloneNamingIt) {
  MakeOldStore();
  ASSERT_THAT(env_.WriteFile(In("owner"), "process 4711\n", 0644), IsOk());
  const auto lock = env_.TryLockFile(In("lock"));
  ASSERT_THAT(lock, IsOk());
  const auto opened = Cache::Open(env_, {store(), 1000});
  EXPECT_TRUE(absl::IsUnavailable(opened.status()));
  EXPECT_THAT(GetErrorDetail(opened.status()).message(), AllOf(HasSubstr("process 4711"), HasSubstr(store())));
  EXPECT_EQ(*env_.ReadFile(In("version")), "1\n");
  EXPECT_TRUE(env_.Stat(In("index.sqlite")).ok());
}

TEST_F(OldStoreTest, OnAFullDiskItStaysAsItWas) {
  MakeOldStore();
  env_.Inject(NoSpace(Operation::kWriteFileDurably, "private/index.sqlite"));
  EXPECT_EQ(KindOf(Cache::Open(env_, {store(), 1000}).status()), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(env_.ListDirectory(In("blobs"))->size(), size_t{kEntries});
  Open();
  ExpectAllThere();
}

TEST_F(OldStoreTest, ATakeOverThatIsKilledAnywhereIsFinishedByTheNextStart) {
  int kills = 0;
  for (const Operation operation :
       {Operation::kCreateDirectories, Operation::kLockFile, Operation::kWriteFile, Operation::kReadFile,
        Operation::kWriteFileDurably, Operation::kRename, Operation::kSyncDirectory, Operation::kRemoveTree}) {
    for (int nth = 1;; ++nth) {
      cache_.reset();
      ASSERT_THAT(Env::Posix().RemoveTree(store()), IsOk());
      ASSERT_NO_FATAL_FAILURE(MakeOldStore());
      const pid_t child = fork();
      if (child == 0) {
        Fault fault;
        fault.operation = operation;
        fault.nth = nth;
        fault.before = [] { raise(SIGKILL); };
        TestEnv env;
        env.Inject(fault);
        _exit(Cache::Open(env, {store(), 1 << 30}).ok() ? 0 : 1);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      if (!WIFSIGNALED(status)) break;  // there are fewer such calls
      ++kills;
      Open();
      ExpectAllThere();
      if (HasFailure()) FAIL() << "killed at call " << nth << " of operation " << static_cast<int>(operation);
    }
  }
  EXPECT_GT(kills, 20);
  RecordProperty("kills", kills);
}

TEST_F(OldStoreTest, AnUnfinishedTakeOverSeesWhatAnOlderKernixdWroteAfterwards) {
  MakeOldStore();
  // A copy left by an earlier attempt.
  ASSERT_THAT(env_.CreateDirectories(In("private"), 0700), IsOk());
  for (const char* name : {"index.sqlite", "index.sqlite-wal", "index.sqlite.0123456789abcdef.tmp"}) {
    ASSERT_THAT(env_.WriteFile(In(StrCat("private/", name)), "stale", 0600), IsOk());
  }
  Open();
  ExpectAllThere();
  EXPECT_FALSE(env_.Stat(In("private/index.sqlite.0123456789abcdef.tmp")).ok());
}

TEST_F(OldStoreTest, WhatOthersSeeOfAStoreIsItsVersionAndTheArtifactsThatTheyKnowOf) {
  KERNIX_NEED_ROOT("only root can become somebody else");
  const mode_t before = umask(0022);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_THAT(env_.CreateDirectories(store(), 0755), IsOk());
  Open();
  Insert(1);
  umask(before);
  const std::string artifact = BlobOf(1);
  const std::string artifacts = Dirname(artifact);
  const std::string hidden[] = {In("private/index.sqlite"), In("private/index.sqlite-wal"),
                                In("private/index.sqlite-shm"), In("private/lock"), In("private/tmp")};
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
