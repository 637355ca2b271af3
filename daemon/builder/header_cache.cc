// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/header_cache.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace kernix::build {
namespace {

// The overhead of a small content besides its text.
constexpr uint64_t kOverheadBytes = 256;

uint64_t CostOf(const exec::Content& content) { return content->size() + kOverheadBytes; }

}  // namespace

absl::StatusOr<HeaderContents> HeaderCache::FindOrFetch(UserId user, const std::vector<Digest>& digests,
                                                        LoadObserver& asker) {
  HeaderContents all = Find(user, digests);
  std::vector<Digest> missing;
  for (const Digest& digest : digests) {
    if (!all.contains(digest)) missing.push_back(digest);
  }
  if (missing.empty()) return all;
  KERNIX_ASSIGN_OR_RETURN(const HeaderContents sent, asker.FetchHeaders(missing));
  Add(user, sent);
  all.insert(sent.begin(), sent.end());
  return all;
}

HeaderContents HeaderCache::Find(UserId user, const std::vector<Digest>& digests) {
  HeaderContents found;
  const MutexLock lock(mutex_);
  const auto own = users_.find(user);
  if (own == users_.end()) return found;
  for (const Digest& digest : digests) {
    if (const exec::Content* content = own->second.Find(digest)) found[digest] = *content;
  }
  return found;
}

void HeaderCache::Add(UserId user, const HeaderContents& contents) {
  const MutexLock lock(mutex_);
  Own& own = users_.try_emplace(user, limit_bytes_).first->second;
  for (const auto& [digest, content] : contents) {
    if (!own.Contains(digest)) own.Put(digest, content, CostOf(content));
  }
  Shrink();
}

void HeaderCache::Shrink() {
  uint64_t bytes = 0;
  for (const auto& [user, own] : users_) bytes += own.used();
  while (bytes > limit_bytes_) {
    Own& own = std::max_element(users_.begin(), users_.end(), [](const auto& a, const auto& b) {
                 return a.second.used() < b.second.used();
               })->second;
    bytes -= own.used();
    own.TakeOldest();
    bytes += own.used();
  }
  std::erase_if(users_, [](const auto& user) { return user.second.size() == 0; });
}

}  // namespace kernix::build
