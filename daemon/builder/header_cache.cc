// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/header_cache.h"

namespace kernix::build {
namespace {

// The overhead of a small content besides its text.
constexpr uint64_t kOverheadBytes = 256;

uint64_t CostOf(const exec::Content& content) { return content->size() + kOverheadBytes; }

}  // namespace

HeaderContents HeaderCache::Find(const std::vector<Digest>& digests) {
  HeaderContents found;
  const MutexLock lock(mutex_);
  for (const Digest& digest : digests) {
    const auto place = places_.find(digest);
    if (place == places_.end()) continue;
    blobs_.splice(blobs_.begin(), blobs_, place->second);
    found[digest] = place->second->content;
  }
  return found;
}

void HeaderCache::Add(const HeaderContents& contents) {
  const MutexLock lock(mutex_);
  for (const auto& [digest, content] : contents) {
    if (places_.contains(digest) || CostOf(content) > limit_bytes_) continue;
    blobs_.push_front({digest, content});
    places_[digest] = blobs_.begin();
    bytes_ += CostOf(content);
  }
  Shrink();
}

void HeaderCache::Shrink() {
  while (bytes_ > limit_bytes_) {
    bytes_ -= CostOf(blobs_.back().content);
    places_.erase(blobs_.back().digest);
    blobs_.pop_back();
  }
}

}  // namespace kernix::build
