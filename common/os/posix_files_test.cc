// SPDX-License-Identifier: Apache-2.0
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "common/os/posix_env.h"
#include "common/os/posix_error.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PosixFilesTest : public testing::Test {
 protected:
  Env& env_ = Env::Posix();
  ScratchDirectory scratch_;
};

TEST_F(PosixFilesTest, ErrorsNameThePathAndTheSystemsWords) {
  EXPECT_EQ(env_.ReadFile("/no/such").status().message(), "cannot open /no/such: No such file or directory");
}

// Of a scratch file system that was emptied, say.
TEST_F(PosixFilesTest, ALinkToNothingStandsForTheFolderThatIsMade) {
  ASSERT_EQ(symlink("scratch/store", (scratch_ / "link").c_str()), 0);
  ASSERT_EQ(symlink((scratch_ / "home").c_str(), (scratch_ / "absolute").c_str()), 0);
  ASSERT_EQ(symlink("loop", (scratch_ / "loop").c_str()), 0);
  EXPECT_THAT(env_.CreateDirectories(scratch_ / "link", 0700), IsOk());
  EXPECT_EQ(env_.Stat(scratch_ / "scratch/store")->type, FileType::kDirectory);
  EXPECT_THAT(env_.CreateDirectories(scratch_ / "absolute/cache", 0700), IsOk());
  EXPECT_EQ(env_.Stat(scratch_ / "home/cache")->type, FileType::kDirectory);
  EXPECT_THAT(env_.CreateDirectories(scratch_ / "loop", 0700),
              HasError(absl::StatusCode::kAlreadyExists, HasSubstr("loop")));
}

// An access list that lets user 4711 write, in the kernel's format.
std::string AccessList() {
  struct Entry {
    uint16_t tag, rights;
    uint32_t id;
  };
  const Entry entries[] = {{1, 7, ~0u}, {2, 7, 4711}, {4, 5, ~0u}, {0x10, 7, ~0u}, {0x20, 5, ~0u}};
  constexpr uint32_t kVersion = 2;
  std::string list(reinterpret_cast<const char*>(&kVersion), sizeof kVersion);
  return list.append(reinterpret_cast<const char*>(entries), sizeof entries);
}

TEST_F(PosixFilesTest, SeesAccessLists) {
  const std::string folder = scratch_ / "folder";
  ASSERT_THAT(env_.CreateDirectories(folder, 0755), IsOk());
  const std::string list = AccessList();
  if (setxattr(folder.c_str(), "system.posix_acl_access", list.data(), list.size(), 0) != 0) {
    GTEST_SKIP() << "this file system has no access lists: " << std::generic_category().message(errno);
  }
  EXPECT_TRUE(env_.HasAccessList(folder).value());
  EXPECT_EQ(env_.Stat(folder)->mode, 0775u) << "the list's mask shows as the group's rights";
}

TEST(PosixUsersTest, AGroupIsPrivateWhenItIsMadeForOneUser) {
  setpwent();
  while (const struct passwd* user = getpwent()) {
    const struct group* group = getgrgid(user->pw_gid);
    if (group == nullptr) continue;
    const bool same_name = std::string_view(group->gr_name) == user->pw_name;
    const bool alone = group->gr_mem[0] == nullptr;
    if (alone || !same_name) {
      EXPECT_EQ(Env::Posix().IsPrivateGroup(group->gr_gid, user->pw_uid), same_name) << user->pw_name;
    }
    EXPECT_FALSE(Env::Posix().IsPrivateGroup(group->gr_gid, 4'000'000'000u));
    EXPECT_FALSE(Env::Posix().IsPrivateGroup(4'000'000'000u, user->pw_uid));
  }
  endpwent();
}

TEST(PosixErrorTest, CodesAreTheOnesThatEnvPromises) {
  EXPECT_EQ(CodeForErrno(ENOENT), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeForErrno(EEXIST), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(CodeForErrno(EACCES), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeForErrno(EROFS), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeForErrno(ENOSPC), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeForErrno(EDQUOT), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeForErrno(EMFILE), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeForErrno(EIO), absl::StatusCode::kInternal);
}

TEST_F(PosixFilesTest, ReadsFilesWhoseSizeIsNotTold) {
  EXPECT_THAT(env_.ReadFile("/proc/self/status").value(), HasSubstr("Threads:"));
}

TEST_F(PosixFilesTest, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo((scratch_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(env_.ReadFile(scratch_ / "pipe"), HasError(absl::StatusCode::kInternal, HasSubstr("not a regular file")));
}

TEST_F(PosixFilesTest, ModesDoNotDependOnTheUmask) {
  const mode_t saved = umask(0077);
  EXPECT_THAT(env_.WriteFile(scratch_ / "a", "", 0666), IsOk());
  EXPECT_THAT(env_.WriteFileDurably(scratch_ / "b", "", 0644), IsOk());
  umask(saved);
  EXPECT_EQ(env_.Stat(scratch_ / "a")->mode, 0666u);
  EXPECT_EQ(env_.Stat(scratch_ / "b")->mode, 0644u);
}

TEST_F(PosixFilesTest, WritesMoreThanOneCallTakes) {
  const std::string data(5'000'000, 'x');
  ASSERT_THAT(env_.WriteFileDurably(scratch_ / "big", data, 0644), IsOk());
  EXPECT_EQ(env_.ReadFile(scratch_ / "big").value(), data);
}

TEST_F(PosixFilesTest, AFullDiskIsResourceExhausted) {
  EXPECT_THAT(env_.WriteFile("/dev/full", "x", 0666),
              HasError(absl::StatusCode::kResourceExhausted, HasSubstr("/dev/full: No space left on device")));
}

TEST_F(PosixFilesTest, ManyWritersOfOneFileLeaveOneWholeFile) {
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'i'; ++c) {
    writers.emplace_back([this, c] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_THAT(env_.WriteFileDurably(scratch_ / "f", std::string(10'000, c), 0644), IsOk());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string data = env_.ReadFile(scratch_ / "f").value();
  EXPECT_EQ(data, std::string(10'000, data[0]));
  EXPECT_THAT(env_.ListDirectory(scratch_.path()).value(), ElementsAre("f"));
}

TEST_F(PosixFilesTest, TheProcFileSystemIsNoNetwork) {
  EXPECT_FALSE(env_.OnNetworkFileSystem("/proc").value());
  EXPECT_FALSE(env_.OnNetworkFileSystem("/proc/not/there").value());
}

}  // namespace

}  // namespace kernix
