// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/byte_quota.h"

#include <algorithm>

namespace kernix::exec {

namespace {

// A user who holds anything, even zero bytes, must have an entry.
uint64_t AtLeastOne(uint64_t bytes) { return std::max<uint64_t>(bytes, 1); }

}  // namespace

std::unique_ptr<ByteQuota::Share> ByteQuota::TakeNow(UserId user, uint64_t bytes) {
  const auto found = held_.find(user);
  const bool has_room = max_per_user_ == 0 || found == held_.end() ||
                        (found->second <= max_per_user_ && bytes <= max_per_user_ - found->second);
  if (!has_room) return nullptr;
  held_[user] += AtLeastOne(bytes);
  return std::make_unique<Share>(*this, user, bytes);
}

std::unique_ptr<ByteQuota::Share> ByteQuota::Take(UserId user, uint64_t bytes) {
  const MutexLock lock(mutex_);
  return TakeNow(user, bytes);
}

std::unique_ptr<ByteQuota::Share> ByteQuota::Await(UserId user, uint64_t bytes, MonotonicTime deadline,
                                                   Cancellation* cancellation) {
  bool is_cancelled = false;
  const ScopedOnCancel on_cancel(cancellation, [&] {
    const MutexLock lock(mutex_);
    is_cancelled = true;
    changed_.NotifyAll();
  });
  const MutexLock lock(mutex_);
  for (bool in_time = true; !is_cancelled; in_time = changed_.WaitUntil(mutex_, deadline)) {
    if (auto share = TakeNow(user, bytes)) return share;
    if (!in_time) break;
  }
  return nullptr;
}

void ByteQuota::GiveBack(UserId user, uint64_t bytes) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(user);
  if ((found->second -= AtLeastOne(bytes)) == 0) held_.erase(found);
  changed_.NotifyAll();
}

}  // namespace kernix::exec
