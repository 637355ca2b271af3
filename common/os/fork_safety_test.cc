// SPDX-License-Identifier: Apache-2.0
#include "common/os/fork_safety.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace kernix {
namespace {

ForkSafeMutex& TestMutex() { return PerProcess<ForkSafeMutex>::Get(); }

TEST(ForkSafetyTest, AChildFindsTheLockFree) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> lockers;
  for (int i = 0; i < 4; ++i) {
    lockers.emplace_back([&] {
      while (!stop) MutexLock lock(TestMutex());
    });
  }
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // if a lock is not free, a signal ends the child
      { MutexLock lock(TestMutex()); }
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& locker : lockers) locker.join();
}

}  // namespace
}  // namespace kernix
