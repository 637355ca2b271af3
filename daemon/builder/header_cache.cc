// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/header_cache.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

// The overhead of a small content besides its text.
constexpr uint64_t kOverheadBytes = 256;

uint64_t CostOf(const exec::Content& content) { return content->size() + kOverheadBytes; }

absl::Status CheckContents(const std::vector<Digest>& digests, const HeaderContents& contents) {
  for (const Digest& digest : digests) {
    const auto found = contents.find(digest);
    if (found == contents.end() || found->second == nullptr) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("header content ", digest.Hex(), " was not sent"));
    }
    if (DigestOf(*found->second) != digest) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("header content ", digest.Hex(),
                                                                " does not match its digest: did the file change "
                                                                "during the load?"));
    }
  }
  return absl::OkStatus();
}

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

absl::StatusOr<HeaderContents> OwnHeaders::FetchHeaders(const std::vector<Digest>& digests) {
  HeaderContents all = cache_.Find(user_, digests);
  std::vector<Digest> missing;
  for (const Digest& digest : digests) {
    if (!all.contains(digest)) missing.push_back(digest);
  }
  if (missing.empty()) return all;
  KERNIX_ASSIGN_OR_RETURN(const HeaderContents sent, asker_.FetchHeaders(missing));
  KERNIX_RETURN_IF_ERROR(CheckContents(missing, sent));
  cache_.Add(user_, sent);
  all.insert(sent.begin(), sent.end());
  return all;
}

}  // namespace kernix::build
