// SPDX-License-Identifier: Apache-2.0
//
// All loads enter and leave here: the daemon is done when the gate is closed and no load is inside.
#pragma once

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix::server {

// Thread-safe. open -> closed, once.
class LoadGate {
 public:
  // Held for the duration of a load. The gate must outlive it.
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

  // kUnavailable if the gate is closed. `cancellation` lets the gate cancel the load.
  absl::StatusOr<std::unique_ptr<Pass>> Enter(CancellationPtr cancellation);

  // After this, no load enters.
  void Close();
  bool closed() const;

  int inside() const;

  // Waits until no load is inside. False if `deadline` passes first.
  bool WaitUntilEmpty(MonotonicTime deadline);

  // Cancels every load that is inside. They leave on their own.
  void CancelAll();

 private:
  void Leave(int id);

  mutable Mutex mutex_;
  CondVar left_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, CancellationPtr> inside_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
