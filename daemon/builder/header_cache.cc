// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/header_cache.h"

#include <algorithm>

namespace kernix::build {
namespace {

// The overhead of a small content besides its text.
constexpr uint64_t kOverheadBytes = 256;

uint64_t CostOf(const exec::Content& content) { return content->size() + kOverheadBytes; }

}  // namespace

HeaderContents HeaderCache::Find(UserId user, const std::vector<Digest>& digests) {
  HeaderContents found;
  const MutexLock lock(mutex_);
  const auto own = users_.find(user);
  if (own == users_.end()) return found;
  auto& [blobs, places, bytes] = own->second;
  for (const Digest& digest : digests) {
    const auto place = places.find(digest);
    if (place == places.end()) continue;
    blobs.splice(blobs.begin(), blobs, place->second);
    found[digest] = place->second->content;
  }
  return found;
}

void HeaderCache::Add(UserId user, const HeaderContents& contents) {
  const MutexLock lock(mutex_);
  Own& own = users_[user];
  for (const auto& [digest, content] : contents) {
    if (own.places.contains(digest) || CostOf(content) > limit_bytes_) continue;
    own.blobs.push_front({digest, content});
    own.places[digest] = own.blobs.begin();
    own.bytes += CostOf(content);
    bytes_ += CostOf(content);
  }
  Shrink();
}

void HeaderCache::Shrink() {
  while (bytes_ > limit_bytes_) {
    const auto most = std::max_element(users_.begin(), users_.end(),
                                       [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    Own& own = most->second;
    const uint64_t cost = CostOf(own.blobs.back().content);
    own.bytes -= cost;
    bytes_ -= cost;
    own.places.erase(own.blobs.back().digest);
    own.blobs.pop_back();
  }
  std::erase_if(users_, [](const auto& user) { return user.second.blobs.empty(); });
}

}  // namespace kernix::build
