// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/work_queue.h"

#include <utility>

namespace kernix::build {

WorkQueue::WorkQueue(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkQueue::~WorkQueue() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkQueue::PushAt(MonotonicTime due, Task task) {
  const MutexLock lock(mutex_);
  tasks_.emplace(due, std::move(task));
  changed_.NotifyAll();
}

void WorkQueue::Run() {
  while (const Task task = Take()) task();
}

WorkQueue::Task WorkQueue::Take() {
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

}  // namespace kernix::build
