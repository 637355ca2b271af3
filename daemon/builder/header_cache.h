// SPDX-License-Identifier: Apache-2.0
//
// The contents of headers that clients have sent recently, to save uploads.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "common/base/mutex.h"
#include "daemon/builder/flight.h"

namespace kernix::build {

// Keeps the most recently used contents of each user, up to a number of bytes of all users together; beyond that, the
// user with the most bytes loses contents. A content serves only users who have sent it. Thread-safe.
class HeaderCache {
 public:
  explicit HeaderCache(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // The contents of `digests`: those that `user` has sent before, and the others from the client, by `asker`, which are
  // kept.
  absl::StatusOr<HeaderContents> FindOrFetch(UserId user, const std::vector<Digest>& digests, LoadObserver& asker);

  // Those among `digests` whose contents `user` has sent.
  HeaderContents Find(UserId user, const std::vector<Digest>& digests);

  // Keeps uploads of `user`. Each content must match its digest. A content larger than the limit is not kept.
  void Add(UserId user, const HeaderContents& contents);

 private:
  using Own = Lru<Digest, exec::Content>;  // by bytes

  void Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t limit_bytes_;
  Mutex mutex_;
  std::map<UserId, Own> users_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
