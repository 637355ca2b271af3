// SPDX-License-Identifier: Apache-2.0
//
// Cancellation of blocking work across threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

namespace kernix {

// The canceller and the cancelled work share one object. Thread-safe. A cancellation is final.
class Cancellation {
 public:
  // Runs the callbacks of every ScopedOnCancel once, in the calling thread. Later calls do nothing.
  void Cancel() { source_.request_stop(); }

  bool cancelled() const { return source_.stop_requested(); }

  // Of `cancellation`. One that never fires if it is null.
  static std::stop_token TokenOf(const Cancellation* cancellation) {
    return cancellation == nullptr ? std::stop_token() : cancellation->source_.get_token();
  }

 private:
  std::stop_source source_;
};

using CancellationPtr = std::shared_ptr<Cancellation>;

// Calls `callback` if `cancellation` (may be null) fires while the object exists, or at once if it has fired. The
// destructor waits for a callback that runs in another thread. The callback must not block.
class ScopedOnCancel {
 public:
  ScopedOnCancel(const Cancellation* cancellation, std::function<void()> callback)
      : callback_(Cancellation::TokenOf(cancellation), std::move(callback)) {}

 private:
  const std::stop_callback<std::function<void()>> callback_;
};

// Waits. Returns false at once when `cancellation` (which may be null) fires.
inline bool Pause(std::chrono::milliseconds time, const Cancellation* cancellation) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  const std::stop_token token = Cancellation::TokenOf(cancellation);
  std::condition_variable_any().wait_for(lock, token, time, [] { return false; });
  return !token.stop_requested();
}

}  // namespace kernix
