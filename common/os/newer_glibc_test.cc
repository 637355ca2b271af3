// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "common/os/unique_fd.h"

// As in an old glibc, where nothing new is found.
extern "C" void* __wrap_dlsym(void*, const char*) { return nullptr; }

int CloseOneByOne(int first, unsigned last);  // newer_glibc.cc

namespace kernix {
namespace {

using ::testing::SizeIs;

constexpr char kLink[] = "/proc/self/exe";

UniqueFd Open() { return UniqueFd(open(kLink, O_RDONLY | O_CLOEXEC)); }

TEST(NewerGlibcTest, StatusOfFiles) {
  struct stat followed {
  }, link{}, opened{}, relative{};
  EXPECT_EQ(stat(kLink, &followed), 0);
  EXPECT_EQ(lstat(kLink, &link), 0);
  EXPECT_EQ(fstat(Open().get(), &opened), 0);
  EXPECT_EQ(fstatat(UniqueFd(open("/proc/self", O_PATH | O_CLOEXEC)).get(), "exe", &relative, AT_SYMLINK_NOFOLLOW), 0);
  EXPECT_TRUE(S_ISREG(followed.st_mode));
  EXPECT_EQ(followed.st_ino, opened.st_ino);
  EXPECT_EQ(followed.st_size, opened.st_size);
  EXPECT_TRUE(S_ISLNK(link.st_mode));
  EXPECT_EQ(relative.st_ino, link.st_ino);
  EXPECT_EQ(stat("/proc/self/none", &followed), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST(NewerGlibcTest, StatusOfFilesUnderNamesForLargeOnes) {
  struct stat64 followed {
  }, link{}, opened{};
  EXPECT_EQ(stat64(kLink, &followed), 0);
  EXPECT_EQ(lstat64(kLink, &link), 0);
  EXPECT_EQ(fstat64(Open().get(), &opened), 0);
  EXPECT_EQ(followed.st_ino, opened.st_ino);
  EXPECT_TRUE(S_ISLNK(link.st_mode));
}

TEST(NewerGlibcTest, FlagsOfFiles) {
  const UniqueFd file = Open();
  EXPECT_EQ(fcntl64(file.get(), F_SETFD, 0), 0);
  EXPECT_EQ(fcntl64(file.get(), F_GETFD), 0);
}

// Closes two descriptors of three.
void TryToClose(int (*close_them)(unsigned, unsigned)) {
  int fds[3];
  for (int& fd : fds) fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
  EXPECT_EQ(close_them(100, 101), 0);
  EXPECT_EQ(fcntl(fds[0], F_GETFD), -1);
  EXPECT_EQ(fcntl(fds[1], F_GETFD), -1);
  EXPECT_NE(fcntl(fds[2], F_GETFD), -1);
  close(fds[2]);
}

TEST(NewerGlibcTest, ClosesARangeOfDescriptors) {
  TryToClose([](unsigned first, unsigned last) { return close_range(first, last, 0); });
}

TEST(NewerGlibcTest, ClosesARangeOnAnOldKernel) {
  TryToClose([](unsigned first, unsigned last) { return CloseOneByOne(static_cast<int>(first), last); });
}

TEST(NewerGlibcTest, StartsAProgramWithoutOtherFiles) {
  const UniqueFd inherited(fcntl(STDERR_FILENO, F_DUPFD, 100));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  EXPECT_EQ(posix_spawn_file_actions_addclosefrom_np(&actions, 100), 0);
  char script[] = "[ ! -e /proc/self/fd/100 ]";
  char* argv[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), script, nullptr};
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, "/bin/sh", &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST(NewerGlibcTest, WaitsUntilAMoment) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  ++end.tv_sec;
  pthread_mutex_lock(&mutex);
  EXPECT_EQ(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &end), ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  EXPECT_GE(now.tv_sec, end.tv_sec);
}

TEST(NewerGlibcTest, ErrorsAreEnglish) { EXPECT_STREQ(strerrordesc_np(ENOENT), "No such file or directory"); }

TEST(NewerGlibcTest, RandomNumbersDiffer) {
  std::set<uint32_t> numbers;
  for (int i = 0; i < 4; ++i) numbers.insert(arc4random());
  EXPECT_THAT(numbers, SizeIs(4));
}

}  // namespace
}  // namespace kernix
