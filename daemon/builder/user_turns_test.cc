// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/user_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace kernix::build {
namespace {

constexpr UserId kUser{1000};
constexpr UserId kOther{1001};

TEST(UserTurnsTest, SomeOfAUserGoOnAtOnce) {
  UserTurns turns(2);
  std::atomic<int> under_way = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      const UserTurns::Turn turn(turns, kUser);
      const int now = ++under_way;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --under_way;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 2);
}

TEST(UserTurnsTest, NobodyWaitsForAnotherUser) {
  UserTurns turns(1);
  const UserTurns::Turn turn(turns, kUser);
  const UserTurns::Turn other(turns, kOther);
}

}  // namespace
}  // namespace kernix::build
