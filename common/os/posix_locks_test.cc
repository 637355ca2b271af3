// SPDX-License-Identifier: Apache-2.0
//
// Locks between processes; env_test.cc tests locks within one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "common/os/posix_env.h"
#include "tests/support/await.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;

// Runs once, before the next flock() of this program.
std::function<void()> before_flock;

}  // namespace
}  // namespace kernix

// Replaces libc's flock(). A test cannot otherwise act between the opening and the locking of a lock's file.
extern "C" int flock(int fd, int operation) noexcept {
  if (kernix::before_flock) std::exchange(kernix::before_flock, nullptr)();
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}

namespace kernix {
namespace {

MonotonicTime FarAway() { return Env::Posix().Now() + std::chrono::minutes(1); }

class PosixLocksTest : public testing::Test {
 protected:
  // A child that holds the lock until it is killed. Returns once the child holds the lock.
  pid_t StartHolder() {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      const auto lock = env_.TryLockFile(path_);
      if (lock.ok() && write(ready[1], "x", 1) == 1) pause();
      _exit(1);
    }
    char byte = 0;
    close(ready[1]);
    AwaitReadable("the child's lock", ready[0]);
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
  }

  Env& env_ = Env::Posix();
  ScratchDirectory scratch_;
  const std::string path_ = scratch_ / "lock";
};

TEST_F(PosixLocksTest, TheKernelReleasesTheLockOfAKilledProcess) {
  const pid_t holder = StartHolder();
  EXPECT_THAT(env_.TryLockFile(path_), HasError(absl::StatusCode::kUnavailable, HasSubstr(path_)));
  kill(holder, SIGKILL);
  EXPECT_THAT(env_.LockFile(path_, FarAway()), IsOk());
  waitpid(holder, nullptr, 0);
}

TEST_F(PosixLocksTest, AForkedChildDoesNotKeepTheLockOfItsParent) {
  auto lock = env_.TryLockFile(path_);
  ASSERT_THAT(lock, IsOk());
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  lock->reset();
  EXPECT_THAT(env_.TryLockFile(path_), IsOk());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(PosixLocksTest, AWaiterGetsTheLockWhenItIsReleased) {
  auto lock = env_.TryLockFile(path_);
  ASSERT_THAT(lock, IsOk());
  std::thread releaser([&] { lock->reset(); });
  EXPECT_THAT(env_.LockFile(path_, FarAway()), IsOk());
  releaser.join();
}

TEST_F(PosixLocksTest, ALockWhoseFileWasRemovedIsNotMistakenForTheNewOne) {
  auto old = env_.TryLockFile(path_);
  ASSERT_THAT(old, IsOk());
  ASSERT_THAT(env_.RemoveFile(path_), IsOk());
  EXPECT_THAT(env_.TryLockFile(path_), IsOk());
}

TEST_F(PosixLocksTest, AFileThatIsRemovedBeforeItIsLockedGuardsNothingAndIsLeft) {
  before_flock = [this] { EXPECT_THAT(env_.RemoveFile(path_), IsOk()); };
  const auto lock = env_.TryLockFile(path_);
  ASSERT_THAT(lock, IsOk());
  EXPECT_EQ(before_flock, nullptr) << "it was called";
  EXPECT_THAT(env_.TryLockFile(path_), HasError(absl::StatusCode::kUnavailable, HasSubstr(path_)));
}

TEST_F(PosixLocksTest, AFileThatIsReplacedBeforeItIsLockedGuardsNothingAndIsLeft) {
  before_flock = [this] {
    EXPECT_THAT(env_.RemoveFile(path_), IsOk());
    EXPECT_THAT(env_.WriteFile(path_, "", 0600), IsOk());
  };
  const auto lock = env_.TryLockFile(path_);
  ASSERT_THAT(lock, IsOk());
  EXPECT_THAT(env_.TryLockFile(path_), HasError(absl::StatusCode::kUnavailable, HasSubstr(path_)));
}

TEST_F(PosixLocksTest, ALinkIsNotFollowed) {
  ASSERT_EQ(symlink((scratch_ / "elsewhere").c_str(), path_.c_str()), 0);
  EXPECT_FALSE(env_.TryLockFile(path_).ok());
  EXPECT_FALSE(env_.Stat(scratch_ / "elsewhere").ok());
}

TEST_F(PosixLocksTest, AFolderThatIsNotThereIsNotFound) {
  EXPECT_THAT(env_.TryLockFile(scratch_ / "no/lock"), HasError(absl::StatusCode::kNotFound, HasSubstr("no/lock")));
}

}  // namespace
}  // namespace kernix
