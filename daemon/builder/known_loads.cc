// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/known_loads.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace kernix::build {

Digest DigestOfLookup(const v1::LookupRequest& lookup) {
  CanonicalHasher hasher("kernix-lookup");
  hasher.Field("load", lookup.load());
  hasher.Field("toolchain", lookup.toolchain().SerializeAsString());
  hasher.Field("language", static_cast<uint64_t>(lookup.language()));
  return hasher.Finish();
}

bool DependsOnFiles(const BuildRequest& request) {
  // A library that no folder has is no file yet.
  const auto names_library = [](const std::string& flag) { return flag.starts_with("-l"); };
  return !request.flag_files.empty() || request.keep ||
         std::any_of(request.link_flags.begin(), request.link_flags.end(), names_library);
}

KnownHitPtr KnownLoads::Find(const Digest& request, const toolchain::ToolchainPtr& toolchain) {
  const MutexLock lock(mutex_);
  const Kept* const found = loads_.Find(request);
  return found != nullptr && found->hit->toolchain == toolchain ? found->hit : nullptr;
}

void KnownLoads::Add(const Digest& request, UserId user, KnownHit hit) {
  if (hit.result.ByteSizeLong() > kMostHitBytes) return;
  const MutexLock lock(mutex_);
  if (!ShareHeaders(hit)) return;
  if (loads_.size() >= limit_ && !loads_.Contains(request)) DropOne();
  loads_.Put(request, Kept{user, std::make_shared<const KnownHit>(std::move(hit))});
}

void KnownLoads::DropOne() {
  absl::flat_hash_map<UserId, size_t> counts;
  for (const auto& [request, kept] : loads_) ++counts[kept.user];
  const auto largest =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest == counts.end()) return;
  loads_.TakeOldest([&](const Kept& kept) { return kept.user == largest->first; });
}

bool KnownLoads::ShareHeaders(KnownHit& hit) {
  const auto same = std::find_if(header_lists_.begin(), header_lists_.end(),
                                 [&](const FileCheck::Files& list) { return *list == *hit.headers; });
  if (same != header_lists_.end()) {
    hit.headers = *same;
    return true;
  }
  while (headers_ + hit.headers->size() > kMostHeaders && loads_.size() > 0) MakeRoomForHeaders();
  if (headers_ + hit.headers->size() > kMostHeaders) return false;
  headers_ += hit.headers->size();
  header_lists_.push_back(hit.headers);
  return true;
}

// A look at all loads for each list would take longer than the list is worth.
void KnownLoads::MakeRoomForHeaders() {
  for (size_t left = 1 + loads_.size() / 8; left > 0; --left) DropOne();
  absl::flat_hash_set<FileCheck::Files> used;
  for (const auto& [request, kept] : loads_) used.insert(kept.hit->headers);
  header_lists_.assign(used.begin(), used.end());
  headers_ = 0;
  for (const FileCheck::Files& list : header_lists_) headers_ += list->size();
}

}  // namespace kernix::build
