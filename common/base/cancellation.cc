// SPDX-License-Identifier: Apache-2.0
#include "common/base/cancellation.h"

#include <algorithm>

namespace kernix {
namespace {

struct Waiter {
  Mutex mutex;
  CondVar changed;
  bool cancelled ABSL_GUARDED_BY(mutex) = false;

  void Cancel() {
    const MutexLock lock(mutex);
    cancelled = true;
    changed.NotifyAll();
  }

  bool WaitUntil(std::chrono::steady_clock::time_point deadline) {
    const MutexLock lock(mutex);
    while (!cancelled) {
      if (!changed.WaitUntil(mutex, deadline)) return !cancelled;
    }
    return false;
  }
};

}  // namespace

void Cancellation::Cancel() {
  // Callbacks run under the lock, so that Remove() waits for them. They are destroyed after the lock is released.
  std::vector<std::pair<int, std::function<void()>>> callbacks;
  MutexLock lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
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

bool Pause(std::chrono::milliseconds time, Cancellation* cancellation) {
  Waiter waiter;
  const ScopedOnCancel on_cancel(cancellation, [&waiter] { waiter.Cancel(); });
  return waiter.WaitUntil(std::chrono::steady_clock::now() + time);
}

}  // namespace kernix
