// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/journal.h"

#include <algorithm>
#include <utility>

namespace kernix::cache {
namespace {

bool Holds(const PendingUses& uses, UserId owner, const Digest& key) {
  const auto use = uses.find(key);
  return use != uses.end() && std::any_of(use->second.tags.begin(), use->second.tags.end(),
                                          [&](const Tag& tag) { return tag.owner == owner; });
}

}  // namespace

void PendingUseBuffer::AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms) {
  const MutexLock lock(mutex_);
  PendingUse& use = uses_[key];
  use.last_used_unix_ms = std::max(use.last_used_unix_ms, now_unix_ms);
  ++use.hits;
  Note(use, tag);
}

void PendingUseBuffer::AddTag(const Digest& key, const Tag& tag) {
  const MutexLock lock(mutex_);
  Note(uses_[key], tag);
}

void PendingUseBuffer::Note(PendingUse& use, const Tag& tag) {
  int& count = tags_of_[tag.owner];
  if (count < kMaxPendingTagsPerOwner && use.tags.insert(tag).second) ++count;
}

bool PendingUseBuffer::HasTagOf(UserId owner, const Digest& key) const {
  const MutexLock lock(mutex_);
  return Holds(uses_, owner, key) || Holds(*taken_, owner, key);
}

std::shared_ptr<const PendingUses> PendingUseBuffer::Take() {
  const MutexLock lock(mutex_);
  taken_ = std::make_shared<const PendingUses>(std::exchange(uses_, {}));
  tags_of_.clear();
  return taken_;
}

void PendingUseBuffer::Written() {
  const MutexLock lock(mutex_);
  taken_ = std::make_shared<PendingUses>();
}

void PendingUseBuffer::PutBack() {
  const MutexLock lock(mutex_);
  for (const auto& [key, from] : *taken_) {
    PendingUse& use = uses_[key];
    use.last_used_unix_ms = std::max(use.last_used_unix_ms, from.last_used_unix_ms);
    use.hits += from.hits;
    for (const Tag& tag : from.tags) Note(use, tag);
  }
  taken_ = std::make_shared<PendingUses>();
}

}  // namespace kernix::cache
