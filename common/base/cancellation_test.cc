// SPDX-License-Identifier: Apache-2.0
#include "common/base/cancellation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/support/await.h"

namespace kernix {
namespace {

TEST(CancellationTest, RunsEachCallbackOnce) {
  Cancellation cancellation;
  int first = 0;
  int second = 0;
  cancellation.OnCancel([&] { ++first; });
  cancellation.OnCancel([&] { ++second; });
  EXPECT_FALSE(cancellation.cancelled());
  EXPECT_EQ(first, 0);

  cancellation.Cancel();
  cancellation.Cancel();

  EXPECT_TRUE(cancellation.cancelled());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(CancellationTest, CallsAtOnceWhenItHasHappened) {
  Cancellation cancellation;
  cancellation.Cancel();
  int calls = 0;
  cancellation.OnCancel([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(CancellationTest, RemovedCallbackDoesNotRun) {
  Cancellation cancellation;
  int removed = 0;
  int kept = 0;
  const int id = cancellation.OnCancel([&] { ++removed; });
  cancellation.OnCancel([&] { ++kept; });
  cancellation.Remove(id);
  cancellation.Remove(id);
  cancellation.Cancel();
  EXPECT_EQ(removed, 0);
  EXPECT_EQ(kept, 1);
}

TEST(CancellationTest, CallbackThatOwnsTheCancellationIsDestroyedOutsideItsLock) {
  auto cancellation = std::make_shared<Cancellation>();
  struct Guard {
    explicit Guard(std::shared_ptr<Cancellation> c) : cancellation(std::move(c)) {}
    ~Guard() { was_cancelled = cancellation->cancelled(); }
    std::shared_ptr<Cancellation> cancellation;
    bool was_cancelled = false;
  };
  cancellation->OnCancel([guard = std::make_shared<Guard>(cancellation)] {});
  cancellation->Cancel();  // would deadlock
  EXPECT_EQ(cancellation.use_count(), 1);
}

TEST(CancellationTest, RemoveWaitsForARunningCallback) {
  Cancellation cancellation;
  std::promise<void> entered;
  std::promise<void> release;
  std::atomic<bool> finished = false;
  const int id = cancellation.OnCancel([&] {
    entered.set_value();
    AwaitValue("the release of the callback", release.get_future());
    finished = true;
  });
  std::thread canceller([&] { cancellation.Cancel(); });
  AwaitValue("the callback", entered.get_future());
  std::thread releaser([&] { release.set_value(); });
  cancellation.Remove(id);
  EXPECT_TRUE(finished);
  canceller.join();
  releaser.join();
}

TEST(CancellationTest, ACancelledPauseEnds) {
  Cancellation cancellation;
  std::jthread canceller([&] { cancellation.Cancel(); });
  EXPECT_FALSE(Pause(std::chrono::hours(1), &cancellation));
  EXPECT_FALSE(Pause(std::chrono::hours(1), &cancellation)) << "cancelled before";
  EXPECT_TRUE(Pause(std::chrono::milliseconds(1), nullptr));
}

}  // namespace
}  // namespace kernix
