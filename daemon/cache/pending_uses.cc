// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/pending_uses.h"

#include <algorithm>
#include <utility>

namespace kernix::cache {

void PendingUseBuffer::AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms) {
  const MutexLock lock(mutex_);
  PendingUse& use = uses_[key];
  use.last_used_unix_ms = std::max(use.last_used_unix_ms, now_unix_ms);
  ++use.hits;
  use.tags.insert(tag);
}

void PendingUseBuffer::AddTag(const Digest& key, const Tag& tag) {
  const MutexLock lock(mutex_);
  uses_[key].tags.insert(tag);
}

bool PendingUseBuffer::HasTagOf(UserId owner, const Digest& key) const {
  const MutexLock lock(mutex_);
  const auto use = uses_.find(key);
  return use != uses_.end() && std::any_of(use->second.tags.begin(), use->second.tags.end(),
                                           [&](const Tag& tag) { return tag.owner == owner; });
}

PendingUses PendingUseBuffer::Take() {
  const MutexLock lock(mutex_);
  return std::exchange(uses_, {});
}

void PendingUseBuffer::PutBack(const PendingUses& uses) {
  const MutexLock lock(mutex_);
  for (const auto& [key, from] : uses) {
    PendingUse& use = uses_[key];
    use.last_used_unix_ms = std::max(use.last_used_unix_ms, from.last_used_unix_ms);
    use.hits += from.hits;
    use.tags.insert(from.tags.begin(), from.tags.end());
  }
}

}  // namespace kernix::cache
