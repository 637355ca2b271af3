// SPDX-License-Identifier: Apache-2.0
//
// Where every load comes in and goes out: the daemon is done when the gate is closed and nobody is inside.
#pragma once

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix::server {

// Thread-safe. open -> closed, once.
class LoadGate {
 public:
  // `max_per_user` 0: any number.
  explicit LoadGate(int max_per_user = 0) : max_per_user_(max_per_user) {}

  // Held as long as a load is not over. The gate must outlive it.
  class Pass {
   public:
    Pass(LoadGate& gate, int id) : gate_(gate), id_(id) {}
    ~Pass() { gate_.Leave(id_); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    LoadGate& gate_;
    const int id_;
  };

  // kUnavailable when the gate is closed, kResourceExhausted when `user` has as many loads inside as one may have: each
  // costs a thread, and no user shall take them all. `cancellation` ends the load from outside.
  absl::StatusOr<std::unique_ptr<Pass>> Enter(const Identity& user, CancellationPtr cancellation);

  // From now on nobody comes in.
  void Close();
  bool closed() const;

  int inside() const;

  // Waits until nobody is inside. False when `deadline` passed first.
  bool WaitUntilEmpty(MonotonicTime deadline);

  // Cancels every load that is inside. They leave on their own.
  void CancelAll();

 private:
  void Leave(int id);

  struct Load {
    UserId user;
    CancellationPtr cancellation;
  };

  const int max_per_user_;
  mutable Mutex mutex_;
  CondVar left_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, Load> inside_ ABSL_GUARDED_BY(mutex_);
  std::map<UserId, int> inside_of_user_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
