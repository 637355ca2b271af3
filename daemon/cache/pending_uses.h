// SPDX-License-Identifier: Apache-2.0
//
// Uses and tags that wait to be written.
#pragma once

#include <cstdint>
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

// Thread-safe.
class PendingUseBuffer {
 public:
  void AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms);
  void AddTag(const Digest& key, const Tag& tag);

  // Whether a tag of `owner` for `key` is pending.
  bool HasTagOf(UserId owner, const Digest& key) const;

  // Removes and returns everything.
  PendingUses Take();

  // Puts back what Take() returned and could not be written.
  void PutBack(const PendingUses& uses);

 private:
  mutable Mutex mutex_;
  PendingUses uses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::cache
