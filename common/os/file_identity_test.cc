// SPDX-License-Identifier: Apache-2.0
#include "common/os/file_identity.h"

#include <gtest/gtest.h>

#include "tests/support/mem_env.h"

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
}  // namespace kernix
