// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_gate.h"

#include <utility>
#include <vector>

#include "common/base/strings.h"

namespace kernix::server {

absl::StatusOr<std::unique_ptr<LoadGate::Pass>> LoadGate::Enter(const Identity& user, CancellationPtr cancellation) {
  const MutexLock lock(mutex_);
  if (closed_)
    return absl::UnavailableError(
        "this kernixd is draining: it is about to stop and accepts no new loads; use another");
  int& of_user = inside_of_user_[user.id()];
  if (max_per_user_ > 0 && of_user >= max_per_user_) {
    return absl::ResourceExhaustedError(StrCat(
        "user ", user.name(), " has ", of_user, " loads under way, the most that this kernixd allows one user: wait ",
        "for some of them, or raise max_loads_per_user (--max-loads-per-user, KERNIX_MAX_LOADS_PER_USER)"));
  }
  ++of_user;
  const int id = next_id_++;
  inside_[id] = {user.id(), std::move(cancellation)};
  return std::make_unique<Pass>(*this, id);
}

void LoadGate::Leave(int id) {
  const MutexLock lock(mutex_);
  const auto load = inside_.find(id);
  const auto of_user = inside_of_user_.find(load->second.user);
  if (--of_user->second == 0) inside_of_user_.erase(of_user);
  inside_.erase(load);
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
    for (const auto& [id, load] : inside_) running.push_back(load.cancellation);
  }
  for (const CancellationPtr& cancellation : running) cancellation->Cancel();
}

}  // namespace kernix::server
