// SPDX-License-Identifier: Apache-2.0
#include "common/os/file_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class FileIdentityTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) { ASSERT_TRUE(env_.WriteFile(path, text, 0644).ok()); }
  FileIdentity Now(const std::string& path) { return IdentityOf(env_, path).value(); }

  MemEnv env_;
};

TEST_F(FileIdentityTest, TellsOfAChangeThatLeavesSizeAndModificationTime) {
  Write("/f", "one");
  ASSERT_TRUE(env_.SetModificationTime("/f", 1000).ok());
  const FileIdentity before = Now("/f");
  EXPECT_EQ(Now("/f"), before);
  Write("/f", "two");
  ASSERT_TRUE(env_.SetModificationTime("/f", 1000).ok());
  EXPECT_NE(Now("/f"), before);
}

TEST_F(FileIdentityTest, EveryFieldCounts) {
  const FileIdentity same{1, 2, 3, 4, 5};
  EXPECT_EQ((FileIdentity{1, 2, 3, 4, 5}), same);
  EXPECT_NE((FileIdentity{0, 2, 3, 4, 5}), same);
  EXPECT_NE((FileIdentity{1, 0, 3, 4, 5}), same);
  EXPECT_NE((FileIdentity{1, 2, 0, 4, 5}), same);
  EXPECT_NE((FileIdentity{1, 2, 3, 0, 5}), same);
  EXPECT_NE((FileIdentity{1, 2, 3, 4, 0}), same);
}

TEST_F(FileIdentityTest, IsSettledOnceTheClockOfTheFileSystemHasMovedOn) {
  const FileIdentity fine{.ctime_ns = 7 * kSecond + 1};
  EXPECT_FALSE(fine.SettledAt(7'000));
  EXPECT_FALSE(fine.SettledAt(7'100));
  EXPECT_TRUE(fine.SettledAt(7'101));
}

TEST_F(FileIdentityTest, ATimeWithoutFractionsMayBeThatOfACoarseClock) {
  const FileIdentity coarse{.ctime_ns = 8 * kSecond};
  EXPECT_FALSE(coarse.SettledAt(10'000));
  EXPECT_TRUE(coarse.SettledAt(10'001));
}

TEST_F(FileIdentityTest, AModificationTimeThatSomebodySetSettlesNothing) {
  const FileIdentity young{.mtime_ns = kSecond, .ctime_ns = 7 * kSecond + 1};
  EXPECT_FALSE(young.SettledAt(7'050));
  const FileIdentity from_the_future{.mtime_ns = 1000 * kSecond, .ctime_ns = 7 * kSecond + 1};
  EXPECT_TRUE(from_the_future.SettledAt(8'000));
}

TEST_F(FileIdentityTest, OneFileHasManyNames) {
  Write("/f", "one");
  Write("/g", "one");
  ASSERT_TRUE(env_.CreateSymlink("/f", "/link").ok());
  EXPECT_TRUE(IsSameFile(env_, "/f", "/link"));
  EXPECT_FALSE(IsSameFile(env_, "/f", "/g"));
  EXPECT_FALSE(IsSameFile(env_, "/none", "/none"));
}

TEST_F(FileIdentityTest, WatchedFilesAreUnchangedUntilOneChangesOrGoes) {
  std::vector<WatchedFile> files;
  EXPECT_TRUE(absl::IsNotFound(Watch(env_, "/f", files)));
  Write("/f", "one");
  ASSERT_TRUE(env_.CreateSymlink("/f", "/link").ok());
  ASSERT_TRUE(Watch(env_, "/link", files).ok());
  std::vector<WatchedFile> links;
  ASSERT_TRUE(Watch(env_, "/link", links, /*follow=*/false).ok());
  EXPECT_TRUE(Unchanged(env_, files));
  Write("/f", "two");
  EXPECT_FALSE(Unchanged(env_, files));
  EXPECT_TRUE(Unchanged(env_, links, /*follow=*/false));
  ASSERT_TRUE(env_.RemoveFile("/link").ok());
  EXPECT_FALSE(Unchanged(env_, links, /*follow=*/false));
}

TEST_F(FileIdentityTest, AFileThatIsNotThereIsUnchangedUntilItAppears) {
  const std::vector<WatchedFile> files = {StateOf(env_, "/f")};
  EXPECT_FALSE(files[0].identity);
  EXPECT_TRUE(Unchanged(env_, files));
  Write("/f", "");
  EXPECT_FALSE(Unchanged(env_, files));
}

}  // namespace

namespace {

class FileCheckTest : public testing::Test {
 protected:
  FileCheck::Files Recorded(const std::vector<std::string>& paths) {
    std::vector<WatchedFile> files;
    for (const std::string& path : paths) files.push_back(StateOf(env_, path));
    return std::make_shared<const std::vector<WatchedFile>>(std::move(files));
  }

  void Write(const std::string& path, const std::string& text) {
    memory_.AdvanceClock(Duration(1'000));
    ASSERT_THAT(env_.WriteFile(path, text, 0644), IsOk());
  }

  MemEnv memory_;
  FaultEnv env_{memory_};
};

TEST_F(FileCheckTest, SeesWhatHasChanged) {
  Write("/a", "1");
  Write("/b", "1");
  const auto files = Recorded({"/a", "/b", "/nowhere"});
  EXPECT_TRUE(FileCheck(env_).Unchanged(files));
  Write("/b", "2");
  EXPECT_FALSE(FileCheck(env_).Unchanged(files));
  const auto again = Recorded({"/a", "/b", "/nowhere"});
  EXPECT_TRUE(FileCheck(env_).Unchanged(again));
  Write("/nowhere", "");
  EXPECT_FALSE(FileCheck(env_).Unchanged(again));
}

TEST_F(FileCheckTest, ChecksEachFileOnce) {
  Write("/a", "1");
  Write("/b", "1");
  const auto one = Recorded({"/a", "/b"}), other = Recorded({"/b", "/a"});
  const int before = env_.Calls(Operation::kStat);
  FileCheck check(env_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(check.Unchanged(one));
    EXPECT_TRUE(check.Unchanged(other));
  }
  EXPECT_EQ(env_.Calls(Operation::kStat), before + 2);
  FileCheck next(env_);
  EXPECT_TRUE(next.Unchanged(one));
  EXPECT_EQ(env_.Calls(Operation::kStat), before + 4) << "another round checks again";
}

// Checks are counted, and changes watched.
class WatchingEnv : public FaultEnv {
 public:
  explicit WatchingEnv(MemEnv& memory) : FaultEnv(memory), memory_(memory) {}
  std::unique_ptr<FileWatch> WatchFiles() override { return memory_.WatchFiles(); }

 private:
  MemEnv& memory_;
};

class FileCheckerTest : public FileCheckTest {
 protected:
  // A round with one question. `checks`: how many files it has checked.
  bool Round(FileChecker& checker, const FileCheck::Files& files, int& checks) {
    const int before = watching_.Calls(Operation::kStat);
    FileCheck check = checker.Begin();
    const bool unchanged = check.Unchanged(files);
    checks = watching_.Calls(Operation::kStat) - before;
    EXPECT_EQ(check.checked(), static_cast<size_t>(checks));
    spared_ = check.spared();
    checker.Watch(check);
    return unchanged;
  }

  WatchingEnv watching_{memory_};
  size_t spared_ = 0;
};

TEST_F(FileCheckerTest, ChecksOnceUntilSomethingChanges) {
  Write("/a", "1");
  Write("/b", "1");
  const auto files = Recorded({"/a", "/b"});
  FileChecker checker(watching_);
  int checks = 0;
  EXPECT_TRUE(Round(checker, files, checks));
  EXPECT_EQ(checks, 2);
  EXPECT_EQ(spared_, 0u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Round(checker, files, checks));
    EXPECT_EQ(checks, 0);
    EXPECT_EQ(spared_, 2u);
  }
  Write("/b", "2");
  EXPECT_FALSE(Round(checker, files, checks));
  EXPECT_GT(checks, 0);
  EXPECT_FALSE(Round(checker, files, checks));
  const auto again = Recorded({"/a", "/b"});
  EXPECT_TRUE(Round(checker, again, checks));
  EXPECT_EQ(checks, 2);
  EXPECT_TRUE(Round(checker, again, checks));
  EXPECT_EQ(checks, 0);
}

TEST_F(FileCheckerTest, ChecksEachTimeWhatCannotBeWatched) {
  Write("/a", "1");
  ASSERT_THAT(env_.CreateDirectories("/net", 0755), IsOk());
  memory_.AddNetworkFileSystem("/net");
  Write("/net/b", "1");
  const auto files = Recorded({"/a", "/missing", "/net/b"});
  FileChecker checker(watching_);
  int checks = 0;
  for (const int expected : {3, 2, 2}) {
    EXPECT_TRUE(Round(checker, files, checks));
    EXPECT_EQ(checks, expected);
  }
  Write("/net/b", "2");
  EXPECT_FALSE(Round(checker, files, checks));
}

// Between the check and the watch.
TEST_F(FileCheckerTest, AChangeBeforeTheWatchIsNoticed) {
  Write("/a", "1");
  const auto files = Recorded({"/a"});
  FileChecker checker(watching_);
  {
    FileCheck check = checker.Begin();
    EXPECT_TRUE(check.Unchanged(files));
    Write("/a", "2");
    checker.Watch(check);
  }
  int checks = 0;
  EXPECT_FALSE(Round(checker, files, checks));
}

TEST_F(FileCheckerTest, ChecksEachTimeWhereNothingCanBeWatched) {
  Write("/a", "1");
  const auto files = Recorded({"/a"});
  FileChecker checker(env_);
  for (int i = 0; i < 2; ++i) {
    const int before = env_.Calls(Operation::kStat);
    FileCheck check = checker.Begin();
    EXPECT_TRUE(check.Unchanged(files));
    EXPECT_EQ(env_.Calls(Operation::kStat), before + 1);
    checker.Watch(check);
  }
}

class OwnFilesTest : public testing::Test {
 protected:
  OwnFilesTest() {
    EXPECT_THAT(env_.CreateDirectories(folder_), IsOk());
    EXPECT_THAT(env_.WriteFile(file_, "text", 0600), IsOk());
    EXPECT_EQ(symlink(folder_.c_str(), link_.c_str()), 0);
  }

  // What is lost of the file, the folder and the file behind the link once `happens` has.
  template <typename Happens>
  std::string LostAfter(const Happens& happens) {
    OwnFiles files(env_);
    for (const std::string& path : {file_, folder_, link_ + "/file", folder_ + "/was-never-there"}) files.Add(path);
    EXPECT_EQ(files.Names().size(), 3u);
    EXPECT_EQ(files.FirstLost(), "");
    happens();
    return files.FirstLost();
  }

  Env& env_ = Env::Posix();
  ScratchDirectory scratch_;
  const std::string folder_ = scratch_ / "folder";
  const std::string file_ = folder_ + "/file";
  const std::string link_ = scratch_ / "link";
};

TEST_F(OwnFilesTest, WhatIsWrittenOrGetsAnotherModeIsInPlace) {
  EXPECT_EQ(LostAfter([&] {
              EXPECT_THAT(env_.WriteFile(file_, "another text", 0644), IsOk());
              EXPECT_EQ(chmod(folder_.c_str(), 0700), 0);
              EXPECT_THAT(env_.WriteFile(folder_ + "/was-never-there", "", 0600), IsOk());
            }),
            "");
}

TEST_F(OwnFilesTest, AFileThatIsRemovedIsLost) {
  EXPECT_EQ(LostAfter([&] { EXPECT_THAT(env_.RemoveFile(file_), IsOk()); }), file_);
}

TEST_F(OwnFilesTest, AFileThatIsMadeAnewIsLost) {
  EXPECT_EQ(LostAfter([&] {
              EXPECT_THAT(env_.WriteFile(file_ + "2", "text", 0600), IsOk());
              EXPECT_THAT(env_.Rename(file_ + "2", file_), IsOk());
            }),
            file_);
}

TEST_F(OwnFilesTest, AFolderThatIsMovedAwayIsLost) {
  EXPECT_EQ(LostAfter([&] { EXPECT_THAT(env_.Rename(folder_, scratch_ / "elsewhere"), IsOk()); }), folder_);
}

TEST_F(OwnFilesTest, AFileBehindALinkIsLostWithTheLink) {
  EXPECT_EQ(LostAfter([&] { EXPECT_THAT(env_.RemoveFile(link_), IsOk()); }), link_ + "/file");
}

constexpr Duration kLong{10'000};

class SeenFilesTest : public testing::Test {
 protected:
  SeenFilesTest() {
    EXPECT_THAT(env_.CreateDirectories("/k", 0755), IsOk());
    Write("/k/f.cu", "1");
    env_.AdvanceClock(kLong);
  }

  void Write(const std::string& path, const std::string& text) {
    EXPECT_THAT(env_.WriteFile(path, text, 0644), IsOk());
  }

  MemEnv env_;
  SeenFiles files_{env_};
};

TEST_F(SeenFilesTest, AnEditIsAChangeOnce) {
  EXPECT_TRUE(files_.Changed({"/k/f.cu"}));
  files_.NoteLoad({"/k/f.cu"});
  EXPECT_FALSE(files_.Changed({"/k/f.cu"}));
  Write("/k/f.cu", "22");
  EXPECT_TRUE(files_.Changed({"/k/f.cu"}));
  files_.NoteLoad({"/k/f.cu"});
  EXPECT_FALSE(files_.Changed({"/k/f.cu"}));
}

TEST_F(SeenFilesTest, AFileThatGoesOrComesIsAChange) {
  const std::vector<std::string> paths = {"/k/f.cu", "/k/missing.h"};
  files_.Changed(paths);
  files_.NoteLoad(paths);
  EXPECT_FALSE(files_.Changed(paths));
  Write("/k/missing.h", "");
  EXPECT_TRUE(files_.Changed(paths));
  files_.NoteLoad(paths);
  ASSERT_THAT(env_.RemoveFile("/k/f.cu"), IsOk());
  EXPECT_TRUE(files_.Changed(paths));
  EXPECT_TRUE(files_.Changed({"/k/missing.h"})) << "another list";
}

TEST_F(SeenFilesTest, AnEditDuringALoadIsAChange) {
  files_.Changed({"/k/f.cu"});
  Write("/k/f.cu", "22");
  files_.NoteLoad({"/k/f.cu"});
  EXPECT_TRUE(files_.Changed({"/k/f.cu"}));
}

TEST_F(SeenFilesTest, AFileThatTheLoadHasFoundCountsAsSeenIfItIsOldEnough) {
  Write("/k/old.h", "");
  env_.AdvanceClock(kLong);
  files_.Changed({"/k/f.cu"});
  files_.NoteLoad({"/k/f.cu", "/k/old.h"});
  EXPECT_FALSE(files_.Changed({"/k/f.cu", "/k/old.h"}));

  files_.Changed({"/k/f.cu", "/k/old.h"});
  Write("/k/new.h", "");
  files_.NoteLoad({"/k/f.cu", "/k/old.h", "/k/new.h"});
  EXPECT_TRUE(files_.Changed({"/k/f.cu", "/k/old.h", "/k/new.h"})) << "the load may have read an earlier text";
  files_.NoteLoad({"/k/f.cu", "/k/old.h", "/k/new.h"});
  EXPECT_FALSE(files_.Changed({"/k/f.cu", "/k/old.h", "/k/new.h"}));
}

}  // namespace

}  // namespace kernix
