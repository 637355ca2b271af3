// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/queue_watch.h"

#include <grpc/support/time.h>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace kernix::remote {

struct QueueWatch::State {
  Mutex mutex;
  grpc::ClientContext* call ABSL_GUARDED_BY(mutex) = nullptr;
  bool waits ABSL_GUARDED_BY(mutex) = false;
  bool has_run ABSL_GUARDED_BY(mutex) = false;
  bool rang ABSL_GUARDED_BY(mutex) = false;
  bool late ABSL_GUARDED_BY(mutex) = false;

  void EndIfLate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    late = late || (rang && waits && !has_run);
    if (late && call != nullptr) call->TryCancel();
  }
};

QueueWatch::QueueWatch(Duration limit) : state_(std::make_shared<State>()) {
  if (limit <= Duration(0)) return;
  const gpr_timespec end =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(limit.count(), GPR_TIMESPAN));
  alarm_.Set(end, [state = state_](bool rang) {
    const MutexLock lock(state->mutex);
    state->rang = rang;
    state->EndIfLate();
  });
}

QueueWatch::~QueueWatch() { alarm_.Cancel(); }

void QueueWatch::Waits() {
  const MutexLock lock(state_->mutex);
  state_->waits = true;
  state_->EndIfLate();
}

void QueueWatch::Runs() {
  const MutexLock lock(state_->mutex);
  state_->waits = false;
  state_->has_run = true;
}

bool QueueWatch::waits() const {
  const MutexLock lock(state_->mutex);
  return state_->waits;
}

bool QueueWatch::late() const {
  const MutexLock lock(state_->mutex);
  return state_->late;
}

QueueWatch::Call::Call(QueueWatch& watch, grpc::ClientContext& context) : watch_(watch) {
  const MutexLock lock(watch_.state_->mutex);
  watch_.state_->call = &context;
  watch_.state_->EndIfLate();
}

QueueWatch::Call::~Call() {
  const MutexLock lock(watch_.state_->mutex);
  watch_.state_->call = nullptr;
}

}  // namespace kernix::remote
