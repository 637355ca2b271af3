// SPDX-License-Identifier: Apache-2.0
//
// Uses and tags that wait to be written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/cache/entry.h"

namespace kernix::cache {

struct PendingUse {
  int64_t last_used_unix_ms = 0;
  uint64_t hits = 0;
  std::set<Tag> tags;
};
using PendingUses = absl::flat_hash_map<Digest, PendingUse>;  // by key

// Thread-safe. Notes no more than kMaxPendingTagsPerOwner tags of a user at a time.
class PendingUseBuffer {
 public:
  void AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms);
  void AddTag(const Digest& key, const Tag& tag);

  // Whether a tag of `owner` for `key` is pending or being written.
  bool HasTagOf(UserId owner, const Digest& key) const;

  // Removes and returns everything that is pending, to be written. Call Written() or PutBack() before the next Take().
  std::shared_ptr<const PendingUses> Take();

  // What Take() returned is written.
  void Written();

  // What Take() returned could not be written, and is pending again.
  void PutBack();

 private:
  void Note(PendingUse& use, const Tag& tag) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<UserId, int> tags_of_ ABSL_GUARDED_BY(mutex_);  // in `uses_`
  PendingUses uses_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const PendingUses> taken_ ABSL_GUARDED_BY(mutex_) = std::make_shared<PendingUses>();
};

}  // namespace kernix::cache
