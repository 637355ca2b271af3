// SPDX-License-Identifier: Apache-2.0
//
// Cancellation of blocking work across threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace kernix {

// The canceller and the cancelled work share one object. Thread-safe. A cancellation is final.
class Cancellation {
 public:
  // Runs every callback once, in the calling thread. Later calls do nothing.
  void Cancel();

  bool cancelled() const;

  // Waits for Cancel(). False if `deadline` passes first.
  bool AwaitUntil(std::chrono::steady_clock::time_point deadline);

  // Calls `callback` at Cancel(), or immediately if Cancel() has already been called. Returns an id for Remove(). The
  // callback must not call back into this object and must not block.
  int OnCancel(std::function<void()> callback);

  // After Remove() returns, the callback is not running and will not run.
  void Remove(int id);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<int, std::function<void()>>> callbacks_ ABSL_GUARDED_BY(mutex_);
};

using CancellationPtr = std::shared_ptr<Cancellation>;

// Calls `callback` if `cancellation` (may be null) fires while the object exists.
class ScopedOnCancel {
 public:
  ScopedOnCancel(Cancellation* cancellation, std::function<void()> callback) : cancellation_(cancellation) {
    if (cancellation_ != nullptr) id_ = cancellation_->OnCancel(std::move(callback));
  }
  ~ScopedOnCancel() {
    if (cancellation_ != nullptr) cancellation_->Remove(id_);
  }
  ScopedOnCancel(const ScopedOnCancel&) = delete;
  ScopedOnCancel& operator=(const ScopedOnCancel&) = delete;

 private:
  Cancellation* const cancellation_;
  int id_ = 0;
};

// Waits. Returns false at once when `cancellation` (which may be null) fires.
bool Pause(std::chrono::milliseconds time, Cancellation* cancellation);

}  // namespace kernix
