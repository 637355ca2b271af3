// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/byte_quota.h"

#include <algorithm>
#include <atomic>

namespace kernix::exec {

namespace {

// A user who holds anything, even zero bytes, must have an entry.
uint64_t AtLeastOne(uint64_t bytes) { return std::max<uint64_t>(bytes, 1); }

}  // namespace

bool ByteQuota::HasRoom(UserId user, uint64_t bytes) const {
  const auto found = held_.find(user);
  if (max_per_user_ == 0 || found == held_.end()) return true;
  return found->second <= max_per_user_ && bytes <= max_per_user_ - found->second;
}

std::unique_ptr<ByteQuota::Share> ByteQuota::Take(UserId user, uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (!HasRoom(user, bytes)) return nullptr;
  held_[user] += AtLeastOne(bytes);
  return std::make_unique<Share>(*this, user, bytes);
}

std::unique_ptr<ByteQuota::Share> ByteQuota::Await(UserId user, uint64_t bytes, MonotonicTime deadline,
                                                   Cancellation& cancellation) {
  std::atomic<bool> cancelled = false;
  const int id = cancellation.OnCancel([&] {
    cancelled = true;
    Wake();
  });
  std::unique_ptr<Share> share;
  {
    const MutexLock lock(mutex_);
    bool in_time = true;
    while (!HasRoom(user, bytes) && in_time && !cancelled) in_time = changed_.WaitUntil(mutex_, deadline);
    if (HasRoom(user, bytes) && !cancelled) {
      held_[user] += AtLeastOne(bytes);
      share = std::make_unique<Share>(*this, user, bytes);
    }
  }
  cancellation.Remove(id);
  return share;
}

void ByteQuota::GiveBack(UserId user, uint64_t bytes) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(user);
  if ((found->second -= AtLeastOne(bytes)) == 0) held_.erase(found);
  changed_.NotifyAll();
}

void ByteQuota::Wake() {
  const MutexLock lock(mutex_);
  changed_.NotifyAll();
}

}  // namespace kernix::exec
