// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/pending.h"

#include <algorithm>
#include <utility>

namespace kernix::cache {

void Pending::AddLabel(const Digest& key, const Label& label) {
  const MutexLock lock(mutex_);
  changes_.uses[key].labels.insert(label);
}

void Pending::Use(const Digest& key, const Label& label, int64_t now_unix_ms) {
  const MutexLock lock(mutex_);
  PendingChanges::Use& use = changes_.uses[key];
  use.last_used_unix_ms = std::max(use.last_used_unix_ms, now_unix_ms);
  ++use.hits;
  use.labels.insert(label);
  ++changes_.counters[static_cast<size_t>(Counter::kHits)];
}

void Pending::Count(Counter counter, uint64_t n) {
  const MutexLock lock(mutex_);
  changes_.counters[static_cast<size_t>(counter)] += n;
}

bool Pending::HasLabelOf(uid_t owner, const Digest& key) const {
  const MutexLock lock(mutex_);
  const auto use = changes_.uses.find(key);
  return use != changes_.uses.end() && std::any_of(use->second.labels.begin(), use->second.labels.end(),
                                                   [&](const Label& label) { return label.owner == owner; });
}

Counters Pending::counters() const {
  const MutexLock lock(mutex_);
  return changes_.counters;
}

PendingChanges Pending::Take() {
  const MutexLock lock(mutex_);
  return std::exchange(changes_, {});
}

void Pending::PutBack(const PendingChanges& changes) {
  const MutexLock lock(mutex_);
  for (const auto& [key, from] : changes.uses) {
    PendingChanges::Use& use = changes_.uses[key];
    use.last_used_unix_ms = std::max(use.last_used_unix_ms, from.last_used_unix_ms);
    use.hits += from.hits;
    use.labels.insert(from.labels.begin(), from.labels.end());
  }
  for (size_t i = 0; i < changes.counters.size(); ++i) changes_.counters[i] += changes.counters[i];
}

}  // namespace kernix::cache
