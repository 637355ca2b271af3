// SPDX-License-Identifier: Apache-2.0
//
// For tests: waits that end. A wait that takes longer than kPatience ends the test program with a message that says
// what did not happen: what the test holds at that moment, threads and builds, could not be torn down.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>

#include "common/base/mutex.h"

namespace kernix {

// Longer than anything that a test waits for takes, on any machine.
inline constexpr std::chrono::seconds kPatience{60};

// Fails the test that runs and ends the program.
[[noreturn]] void GiveUp(const std::string& what);

// Asks `happened` again and again.
void Await(const std::string& what, const std::function<bool()>& happened);

// Until a read from `fd` would not block.
void AwaitReadable(const std::string& what, int fd);

// The value of `future`.
template <typename Future>
auto AwaitValue(const std::string& what, Future&& future) {
  if (future.wait_for(kPatience) != std::future_status::ready) GiveUp(what);
  return future.get();
}

// On `changed`, whose `mutex` is held, until `happened()`. Clang's analysis cannot see that the condition's mutex is
// this one.
template <typename Condition>
void AwaitChange(const std::string& what, CondVar& changed, Mutex& mutex, const Condition& happened)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!happened()) {
    if (!changed.WaitUntil(mutex, deadline)) GiveUp(what);
  }
}

}  // namespace kernix
