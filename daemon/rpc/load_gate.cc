// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_gate.h"

#include <utility>
#include <vector>

namespace kernix::server {

absl::StatusOr<std::unique_ptr<LoadGate::Pass>> LoadGate::Enter(CancellationPtr cancellation) {
  const MutexLock lock(mutex_);
  if (closed_)
    return absl::UnavailableError(
        "this kernixd is draining: it is about to stop and accepts no new loads; use another");
  const int id = next_id_++;
  inside_[id] = std::move(cancellation);
  return std::make_unique<Pass>(*this, id);
}

void LoadGate::Leave(int id) {
  const MutexLock lock(mutex_);
  inside_.erase(id);
  left_.NotifyAll();
}

void LoadGate::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
}

bool LoadGate::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

int LoadGate::inside() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(inside_.size());
}

bool LoadGate::WaitUntilEmpty(MonotonicTime deadline) {
  const MutexLock lock(mutex_);
  while (!inside_.empty()) {
    if (!left_.WaitUntil(mutex_, deadline)) return inside_.empty();
  }
  return true;
}

void LoadGate::CancelAll() {
  std::vector<CancellationPtr> running;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, cancellation] : inside_) running.push_back(cancellation);
  }
  for (const CancellationPtr& cancellation : running) cancellation->Cancel();
}

}  // namespace kernix::server
