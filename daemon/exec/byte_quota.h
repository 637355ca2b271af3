// SPDX-License-Identifier: Apache-2.0
//
// Limits how many bytes of each user's data are held at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "common/base/cancellation.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix::exec {

// Thread-safe.
class ByteQuota {
 public:
  // `max_per_user` 0: no limit.
  explicit ByteQuota(uint64_t max_per_user) : max_per_user_(max_per_user) {}

  // Given back when destroyed. The quota must outlive it.
  class Share {
   public:
    Share(ByteQuota& quota, UserId user, uint64_t bytes) : quota_(quota), user_(user), bytes_(bytes) {}
    ~Share() { quota_.GiveBack(user_, bytes_); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    ByteQuota& quota_;
    const UserId user_;
    const uint64_t bytes_;
  };

  // Null if `user` has no room for `bytes` at the moment. A user who holds nothing has room for any number.
  std::unique_ptr<Share> Take(UserId user, uint64_t bytes);

  // Waits for room. Null if `deadline` passes or `cancellation` (may be null) fires first.
  std::unique_ptr<Share> Await(UserId user, uint64_t bytes, MonotonicTime deadline, Cancellation* cancellation);

  uint64_t max_per_user() const { return max_per_user_; }

 private:
  std::unique_ptr<Share> TakeNow(UserId user, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(UserId user, uint64_t bytes);

  const uint64_t max_per_user_;
  Mutex mutex_;
  CondVar changed_;
  std::map<UserId, uint64_t> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::exec
