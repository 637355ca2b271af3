// SPDX-License-Identifier: Apache-2.0
//
// Runs actions in threads of their own, so that a test goes on while they wait.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/exec/executor.h"

namespace kernix::exec {

// The destructor waits for all of them.
class ActionThreads {
 public:
  using Done = std::function<void(ActionEnd)>;

  ActionThreads() = default;
  ~ActionThreads() { Join(); }
  ActionThreads(const ActionThreads&) = delete;
  ActionThreads& operator=(const ActionThreads&) = delete;

  // Returns once the executor has the action (or `done` has been called), so that actions come in the order of calls.
  // No other action of this executor may end meanwhile, unless this one ends without the test's doing.
  void Run(Executor& executor, Action action, AskersPtr askers, ActionObserver* observer, CancellationPtr cancellation,
           Done done) {
    const auto count = [&] {
      const ExecutorLoad load = executor.load();
      return load.running + load.queued;
    };
    const int before = count();
    const auto ended = std::make_shared<std::atomic<bool>>(false);
    threads_.emplace_back([&executor, action = std::move(action), askers = std::move(askers), observer,
                           cancellation = std::move(cancellation), done = std::move(done), ended] {
      ActionEnd end = executor.Run(action, askers, observer, cancellation);
      done(std::move(end));
      *ended = true;
    });
    while (!*ended && count() <= before) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace kernix::exec
