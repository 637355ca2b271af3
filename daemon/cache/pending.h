// SPDX-License-Identifier: Apache-2.0
//
// Uses and counts that wait to be written. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/cache/index.h"

namespace kernix::cache {

class Pending {
 public:
  // A hit for `key` now: noted for the entry, and counted.
  void Use(const Digest& key, const Label& label, int64_t now_unix_ms);
  void AddLabel(const Digest& key, const Label& label);
  void Count(Counter counter, uint64_t n);

  // Whether a label of `owner` waits for `key`.
  bool HasLabelOf(uid_t owner, const Digest& key) const;

  Counters counters() const;

  // All that has gathered; nothing is left.
  PendingChanges Take();

  // Adds what Take() gave and could not be written.
  void PutBack(const PendingChanges& changes);

 private:
  mutable Mutex mutex_;
  PendingChanges changes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::cache
