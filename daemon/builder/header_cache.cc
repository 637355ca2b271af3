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
  for (const Digest& digest : digests) {
    if (const exec::Content* content = own->second.contents.Find(digest)) found[digest] = *content;
  }
  return found;
}

void HeaderCache::Add(UserId user, const HeaderContents& contents) {
  const MutexLock lock(mutex_);
  Own& own = users_[user];
  for (const auto& [digest, content] : contents) {
    if (own.contents.Contains(digest) || CostOf(content) > limit_bytes_) continue;
    own.contents.Put(digest, content);
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
    const uint64_t cost = CostOf(own.contents.TakeOldest().value());
    own.bytes -= cost;
    bytes_ -= cost;
  }
  std::erase_if(users_, [](const auto& user) { return user.second.contents.size() == 0; });
}

}  // namespace kernix::build
