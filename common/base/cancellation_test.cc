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
  const ScopedOnCancel on_first(&cancellation, [&] { ++first; });
  const ScopedOnCancel on_second(&cancellation, [&] { ++second; });
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
  const ScopedOnCancel on_cancel(&cancellation, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(CancellationTest, RemovedCallbackDoesNotRun) {
  Cancellation cancellation;
  int removed = 0;
  {
    const ScopedOnCancel on_cancel(&cancellation, [&] { ++removed; });
  }
  cancellation.Cancel();
  EXPECT_EQ(removed, 0);
}

TEST(CancellationTest, RemovingWaitsForARunningCallback) {
  Cancellation cancellation;
  std::promise<void> entered;
  std::promise<void> release;
  std::atomic<bool> finished = false;
  std::jthread canceller, releaser;
  {
    const ScopedOnCancel on_cancel(&cancellation, [&] {
      entered.set_value();
      AwaitValue("the release of the callback", release.get_future());
      finished = true;
    });
    canceller = std::jthread([&] { cancellation.Cancel(); });
    AwaitValue("the callback", entered.get_future());
    releaser = std::jthread([&] { release.set_value(); });
  }
  EXPECT_TRUE(finished);
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
