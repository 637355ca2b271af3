// SPDX-License-Identifier: Apache-2.0
//
// Threads for work in the background.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix::build {

// Runs tasks in the order in which they are due, some at a time. Thread-safe.
class WorkQueue {
 public:
  using Task = std::function<void()>;  // must not throw

  explicit WorkQueue(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  // Waits for the tasks that run, and drops the others.
  ~WorkQueue() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Due now.
  void Push(Task task) { PushAt(std::chrono::steady_clock::now(), std::move(task)); }
  void PushAt(MonotonicTime due, Task task) {
    const MutexLock lock(mutex_);
    tasks_.emplace(due, std::move(task));
    changed_.NotifyAll();
  }

 private:
  void Run() {
    while (const Task task = Take()) task();
  }

  // The next task that is due; an empty one once the queue stops.
  Task Take() {
    const MutexLock lock(mutex_);
    while (!stopping_) {
      if (tasks_.empty()) {
        changed_.Wait(mutex_);
      } else if (const MonotonicTime due = tasks_.begin()->first; due > std::chrono::steady_clock::now()) {
        changed_.WaitUntil(mutex_, due);
      } else {
        Task task = std::move(tasks_.begin()->second);
        tasks_.erase(tasks_.begin());
        return task;
      }
    }
    return nullptr;
  }

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::multimap<MonotonicTime, Task> tasks_ ABSL_GUARDED_BY(mutex_);  // by when they are due
  std::vector<std::thread> threads_;                                  // last: they use the others
};

}  // namespace kernix::build
