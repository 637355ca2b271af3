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

void WorkQueue::Push(Task task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.NotifyAll();
}

void WorkQueue::Run() {
  while (true) {
    Task task;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && tasks_.empty()) changed_.Wait(mutex_);
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace kernix::build
