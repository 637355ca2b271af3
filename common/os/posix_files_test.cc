// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "common/os/posix_env.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"
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

// What a compiler that a text has taken over could leave. The thread acts as a user for whom modes count.
TEST_F(PosixFilesTest, RemovesFoldersThatTheirOwnerHasShut) {
  constexpr uid_t kNobody = 65534;
  const std::string tree = scratch_ / "tree";
  for (const char* folder : {"", "/shut", "/shut/in", "/in/shut", "/in/shut/more", "/empty"}) {
    ASSERT_THAT(env_.CreateDirectories(tree + folder), IsOk());
    ASSERT_THAT(env_.WriteFile(StrCat(tree, folder, "/file"), "x", 0400), IsOk());
  }
  ASSERT_THAT(env_.RemoveFile(tree + "/empty/file"), IsOk());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree)) {
    ASSERT_TRUE(geteuid() != 0 || lchown(entry.path().c_str(), kNobody, kNobody) == 0);
  }
  if (geteuid() == 0) {
    ASSERT_EQ(chown(tree.c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(chmod(scratch_.path().c_str(), 0777), 0);
  }
  for (const char* shut : {"/shut/in", "/shut", "/in/shut", "/empty", ""}) {
    ASSERT_EQ(chmod((tree + shut).c_str(), 0), 0) << shut;
  }
  if (geteuid() == 0) setfsuid(kNobody);
  EXPECT_THAT(env_.RemoveTree(tree), IsOk());
  setfsuid(geteuid());
  EXPECT_THAT(env_.Stat(tree), HasError(absl::StatusCode::kNotFound, HasSubstr("")));
}

TEST_F(PosixFilesTest, RemovesATreeThatIsDeeperThanThereAreDescriptors) {
  const UniqueFd here(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  ASSERT_THAT(env_.CreateDirectories(scratch_ / "tree"), IsOk());
  ASSERT_EQ(chdir((scratch_ / "tree").c_str()), 0);
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(mkdir("moved-1", 0700) == 0 && chdir("moved-1") == 0);
  ASSERT_EQ(fchdir(here.get()), 0);
  ASSERT_THAT(env_.CreateDirectories(scratch_ / "tree/moved-2/in"), IsOk());
  ASSERT_THAT(env_.CreateDirectories(scratch_ / "kept"), IsOk());
  ASSERT_THAT(env_.CreateSymlink(scratch_ / "kept", scratch_ / "tree/moved-2/link"), IsOk());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{static_cast<rlim_t>(here.get()) + 8, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  EXPECT_THAT(env_.RemoveTree(scratch_ / "tree"), IsOk());
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(env_.Stat(scratch_ / "tree"), HasError(absl::StatusCode::kNotFound, HasSubstr("")));
  EXPECT_THAT(env_.Stat(scratch_ / "kept"), IsOk());
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
  if (geteuid() == 0) {
    ASSERT_EQ(symlink("elsewhere", (scratch_ / "of_another").c_str()), 0);
    ASSERT_EQ(lchown((scratch_ / "of_another").c_str(), 4711, 4711), 0);
    EXPECT_FALSE(env_.CreateDirectories(scratch_ / "of_another", 0700).ok());
    EXPECT_FALSE(env_.Stat(scratch_ / "elsewhere").ok());
  }
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

TEST_F(PosixFilesTest, WhatLiesBehindAClosedFolderIsOfItsFileSystem) {
  constexpr uid_t kNobody = 65534;
  ASSERT_THAT(env_.CreateDirectories(scratch_ / "closed/folder", 0700), IsOk());
  ASSERT_EQ(chmod((scratch_ / "closed").c_str(), 0), 0);
  std::thread([&] {
    if (geteuid() == 0) setfsuid(kNobody);
    EXPECT_FALSE(env_.OnNetworkFileSystem(scratch_ / "closed/folder/file").value());
  }).join();
  ASSERT_EQ(chmod((scratch_ / "closed").c_str(), 0700), 0);
}

TEST_F(PosixFilesTest, TheProcFileSystemIsNoNetwork) {
  EXPECT_FALSE(env_.OnNetworkFileSystem("/proc").value());
  EXPECT_FALSE(env_.OnNetworkFileSystem("/proc/not/there").value());
}

}  // namespace

}  // namespace kernix
