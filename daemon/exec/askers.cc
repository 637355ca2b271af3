// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/askers.h"

#include <algorithm>
#include <utility>

namespace kernix::exec {

void Askers::Join(const Asker& asker) {
  std::multiset<Asker> joined = {asker};  // without memory, all stays as it was
  const MutexLock lock(mutex_);
  if (std::exchange(empty_, false)) {
    askers_.swap(joined);
  } else {
    askers_.merge(joined);
  }
}

void Askers::Leave(const Asker& asker) {
  const MutexLock lock(mutex_);
  empty_ = askers_.size() == 1;
  if (!empty_) askers_.erase(askers_.find(asker));
}

bool Askers::empty() const {
  const MutexLock lock(mutex_);
  return empty_;
}

std::vector<QueuePosition> Askers::Positions(uint64_t rank, uint64_t batch_rank) const {
  const MutexLock lock(mutex_);
  std::vector<QueuePosition> positions;
  for (const Asker& asker : askers_) {  // of each user, loads of batches come last
    const QueuePosition position{asker.user, asker.is_of_batch ? batch_rank : rank};
    if (positions.empty() || positions.back().user != asker.user) positions.push_back(position);
  }
  return positions;
}

UserId Askers::First() const {
  const MutexLock lock(mutex_);
  return askers_.begin()->user;
}

size_t Askers::max_parallel() const {
  const MutexLock lock(mutex_);
  size_t most = 1;
  for (const Asker& asker : askers_) {
    if (asker.max_parallel == 0) return 0;
    most = std::max(most, asker.max_parallel);
  }
  return most;
}

}  // namespace kernix::exec
