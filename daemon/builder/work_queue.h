// SPDX-License-Identifier: Apache-2.0
//
// Threads for work that waits for another machine.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace kernix::build {

// Runs tasks in the order in which they came, some at a time. Thread-safe.
class WorkQueue {
 public:
  using Task = std::function<void()>;  // must not throw

  explicit WorkQueue(int threads);
  // Waits for the tasks that run, and drops the others.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Push(Task task);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // last: they use the others
};

}  // namespace kernix::build
