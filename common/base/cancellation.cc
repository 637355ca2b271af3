// SPDX-License-Identifier: Apache-2.0
#include "common/base/cancellation.h"

#include <algorithm>
#include <thread>

namespace kernix {

void Cancellation::Cancel() {
  // Callbacks run under the lock, so that Remove() waits for them. They are destroyed after the lock is released.
  std::vector<std::pair<int, std::function<void()>>> callbacks;
  MutexLock lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  changed_.NotifyAll();
  callbacks.swap(callbacks_);
  for (auto& [id, callback] : callbacks) callback();
}

bool Cancellation::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

int Cancellation::OnCancel(std::function<void()> callback) {
  int id = 0;
  {
    MutexLock lock(mutex_);
    id = next_id_++;
    if (!cancelled_) {
      callbacks_.emplace_back(id, std::move(callback));
      return id;
    }
  }
  callback();
  return id;
}

void Cancellation::Remove(int id) {
  std::function<void()> removed;
  MutexLock lock(mutex_);
  const auto it = std::find_if(callbacks_.begin(), callbacks_.end(), [id](const auto& c) { return c.first == id; });
  if (it == callbacks_.end()) return;
  removed = std::move(it->second);
  callbacks_.erase(it);
}

bool Cancellation::AwaitUntil(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (!cancelled_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return cancelled_;
}

bool Pause(std::chrono::milliseconds time, Cancellation* cancellation) {
  if (cancellation != nullptr) return !cancellation->AwaitUntil(std::chrono::steady_clock::now() + time);
  std::this_thread::sleep_for(time);
  return true;
}

}  // namespace kernix
