// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "common/os/posix_env.h"
#include "tests/support/await.h"

namespace kernix::posix {
namespace {

using testing::Contains;
using testing::Not;
using testing::UnorderedElementsAre;

// A child in its own process group, whose child is in another group.
class TwoGenerations {
 public:
  TwoGenerations() {
    EXPECT_EQ(pipe(pipe_.data()), 0);
    child_ = fork();
    if (child_ == 0) BeParent();
    setpgid(child_, child_);
    AwaitReadable("a grandchild", pipe_[0]);
    EXPECT_EQ(read(pipe_[0], &grandchild_, sizeof grandchild_), static_cast<ssize_t>(sizeof grandchild_));
  }
  ~TwoGenerations() {
    kill(grandchild_, SIGKILL);
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(pipe_[0]);
    close(pipe_[1]);
  }
  TwoGenerations(const TwoGenerations&) = delete;
  TwoGenerations& operator=(const TwoGenerations&) = delete;

  pid_t child() const { return child_; }
  pid_t grandchild() const { return grandchild_; }

 private:
  [[noreturn]] void BeParent() {
    pid_t grandchild = fork();
    if (grandchild == 0) {
      setsid();
      grandchild = getpid();
      if (write(pipe_[1], &grandchild, sizeof grandchild) < 0) _exit(1);
    }
    while (true) pause();
  }

  std::array<int, 2> pipe_{};
  pid_t child_ = 0;
  pid_t grandchild_ = 0;
};

TEST(ProcessTableTest, AFamilyIsTheGroupAndWhatDescendsFromIt) {
  const TwoGenerations processes;
  EXPECT_THAT(Family(processes.child()), UnorderedElementsAre(processes.child(), processes.grandchild()));
  EXPECT_THAT(Family(processes.grandchild()), UnorderedElementsAre(processes.grandchild()));
  EXPECT_THAT(Family(getpid()), Contains(processes.grandchild()));
}

TEST(ProcessTableTest, WhoLostHisParentIsFoundByTheGroup) {
  std::array<int, 2> fds{};
  ASSERT_EQ(pipe(fds.data()), 0);
  const pid_t leader = fork();
  if (leader == 0) {
    setpgid(0, 0);
    if (fork() == 0) {
      const pid_t orphan = fork();
      if (orphan > 0) _exit(write(fds[1], &orphan, sizeof orphan) < 0);
    }
    while (true) pause();
  }
  pid_t orphan = 0;
  AwaitReadable("an orphan", fds[0]);
  ASSERT_EQ(read(fds[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  EXPECT_THAT(Family(leader), Contains(orphan));
  kill(-leader, SIGKILL);
  waitpid(leader, nullptr, 0);
  close(fds[0]);
  close(fds[1]);
  EXPECT_THAT(Family(leader), Not(Contains(leader)));
}

TEST(ProcessTableTest, CountsTheLiving) {
  const TwoGenerations processes;
  // The shared table may be slightly out of date.
  Await("two processes", [&] { return CountFamily(processes.child()) == 2; });
  kill(processes.grandchild(), SIGKILL);  // its parent does not wait for it
  Await("one process", [&] { return CountFamily(processes.child()) == 1; });
}

}  // namespace
}  // namespace kernix::posix
