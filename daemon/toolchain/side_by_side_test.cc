// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/side_by_side.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

namespace kernix::toolchain {
namespace {

TEST(SideBySide, RunsEachTaskOnce) {
  for (const size_t count : {0, 1, 2, 100}) {
    std::vector<std::atomic<int>> runs(count);
    std::vector<std::function<void()>> tasks;
    for (std::atomic<int>& run : runs) tasks.emplace_back([&run] { ++run; });
    RunSideBySide(tasks);
    for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
  }
}

TEST(SideBySide, TwoTasksMayWaitForEachOther) {
  std::promise<void> one, other;
  RunSideBySide({[&] {
                   one.set_value();
                   other.get_future().wait();
                 },
                 [&] {
                   one.get_future().wait();
                   other.set_value();
                 }});
}

TEST(SideBySide, ThrowsWhatATaskHasThrownAfterAllHaveRun) {
  std::atomic<int> runs = 0;
  std::vector<std::function<void()>> tasks(20, [&] { ++runs; });
  tasks[3] = [] { throw std::length_error("too long"); };
  EXPECT_THROW(RunSideBySide(tasks), std::length_error);
  EXPECT_EQ(runs, 19);
}

}  // namespace
}  // namespace kernix::toolchain
