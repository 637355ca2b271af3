// SPDX-License-Identifier: Apache-2.0
#include "client/connection/fork_gate.h"

#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "client/connection/grpc_session.h"

namespace kernix {
namespace {

// Returns the child's exit code. Kills a child that hangs, so that the test ends.
int ForkAndRun(int (*body)()) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(body());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class Event {
 public:
  void Set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

TEST(ForkGateTest, AForkInterruptsASectionAndWaitsForItsEnd) {
  Event entered;
  Event interrupted;
  std::atomic<bool> ended{false};
  std::thread worker([&] {
    ForkGate::Section section;
    section.OnInterrupt([&] { interrupted.Set(); });
    entered.Set();
    interrupted.Wait();
    EXPECT_TRUE(section.interrupted());
    section.OnInterrupt(nullptr);
    ended = true;
  });
  entered.Wait();
  EXPECT_EQ(ForkAndRun([] { return 7; }), 7);
  EXPECT_TRUE(ended);
  worker.join();
}

TEST(ForkGateTest, GrpcRunsWhileASectionUsesIt) {
  const ForkGate::Section section;
  const GrpcUse use;
  EXPECT_NE(grpc_is_initialized(), 0);
}

TEST(ForkGateTest, AnInterruptThatWasMissedIsDeliveredAtOnce) {
  ForkGate::Section section;
  section.Interrupt();
  bool called = false;
  section.OnInterrupt([&] { called = true; });
  EXPECT_TRUE(called);
}

TEST(ForkGateTest, ASectionIsInterruptedOnce) {
  ForkGate::Section section;
  int calls = 0;
  section.OnInterrupt([&] { ++calls; });
  section.Interrupt();
  section.Interrupt();
  EXPECT_EQ(calls, 1);
}

TEST(ForkGateTest, ParentAndChildGoOn) {
  { const ForkGate::Section before; }
  const uint64_t generation = ForkGate::Generation();
  EXPECT_EQ(ForkAndRun([] {
              const ForkGate::Section section;
              return static_cast<int>(ForkGate::Generation());
            }),
            static_cast<int>(generation + 1));
  EXPECT_EQ(ForkGate::Generation(), generation);
  const ForkGate::Section after;
  EXPECT_FALSE(after.interrupted());
}

// gRPC's own end can come after that of the section, in another thread.
TEST(ForkGateTest, AForkWaitsForTheEndOfGrpc) {
  { const ForkGate::Section section; }
  grpc_init();
  std::thread end([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    grpc_shutdown();
  });
  EXPECT_EQ(ForkAndRun([] { return grpc_is_initialized() != 0 ? 8 : 7; }), 7);
  end.join();
}

// The last step of a process, after all handlers of atexit().
bool look_at_the_end = false;
[[gnu::destructor]] void AtTheEnd() {
  if (!look_at_the_end) return;
  const ForkGate::Section section;
  _exit(section.interrupted() && ForkGate::Ending() ? 7 : 8);
}

TEST(ForkGateTest, AtTheEndOfTheProcessASectionIsInterruptedFromTheStart) {
  EXPECT_FALSE(ForkGate::Ending());
  EXPECT_EQ(ForkAndRun([]() -> int {
              look_at_the_end = true;
              std::exit(0);
            }),
            7);
}

// Threads enter and leave sections as fast as they can while others fork. The gate must work in each child.
TEST(ForkGateTest, ManyThreadsEnterWhileManyFork) {
  constexpr int kForks = 25;
  std::atomic<bool> stop{false};
  std::atomic<int> good_children{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        ForkGate::Section section;
        Event interrupted;
        section.OnInterrupt([&] { interrupted.Set(); });
        if (section.interrupted()) interrupted.Wait();
        section.OnInterrupt(nullptr);
      }
    });
  }
  std::vector<std::thread> forkers;
  for (int i = 0; i < 2; ++i) {
    forkers.emplace_back([&] {
      for (int k = 0; k < kForks; ++k) {
        good_children += ForkAndRun([] {
                           const ForkGate::Section section;
                           return 0;
                         }) == 0;
      }
    });
  }
  for (std::thread& forker : forkers) forker.join();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good_children, 2 * kForks);
}

}  // namespace
}  // namespace kernix
