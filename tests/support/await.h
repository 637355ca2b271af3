// SPDX-License-Identifier: Apache-2.0
//
// For tests: waits with a limit. A wait that takes longer than kPatience ends the test program with a message that
// names the missing event, because the threads and builds of the test could not be torn down at that point.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>

#include "common/base/mutex.h"

namespace kernix {

// Longer than any event takes that a test waits for, on any machine.
inline constexpr std::chrono::seconds kPatience{60};

// Fails the running test and ends the program.
[[noreturn]] void GiveUp(const std::string& what);

// Polls `happened` until it returns true.
void Await(const std::string& what, const std::function<bool()>& happened);

// Waits until a read from `fd` would not block.
void AwaitReadable(const std::string& what, int fd);

// Waits for the value of `future` and returns it.
template <typename Future>
auto AwaitValue(const std::string& what, Future&& future) {
  if (future.wait_for(kPatience) != std::future_status::ready) GiveUp(what);
  return future.get();
}

// Waits on `changed`, with `mutex` held, until `happened()`. Clang's analysis cannot see that the condition uses this
// mutex.
template <typename Condition>
void AwaitChange(const std::string& what, CondVar& changed, Mutex& mutex, const Condition& happened)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!happened()) {
    if (!changed.WaitUntil(mutex, deadline)) GiveUp(what);
  }
}

}  // namespace kernix
