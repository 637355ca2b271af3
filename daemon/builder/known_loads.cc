// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/known_loads.h"

#include <algorithm>
#include <utility>

namespace kernix::build {

Digest DigestOfRequest(const v1::LoadRequest& request) { return DigestOf(request.SerializeAsString()); }

bool DependsOnFiles(const BuildRequest& request) {
  // A library that no folder has is no file yet.
  const auto names_library = [](const std::string& flag) { return flag.starts_with("-l"); };
  return !request.flag_files.empty() || request.keep ||
         std::any_of(request.link_flags.begin(), request.link_flags.end(), names_library);
}

KnownLoadPtr KnownLoads::Find(const Digest& request, const toolchain::ToolchainPtr& toolchain) {
  const MutexLock lock(mutex_);
  const auto found = loads_.find(request);
  return found != loads_.end() && found->second.load->toolchain == toolchain ? found->second.load : nullptr;
}

void KnownLoads::Add(const Digest& request, UserId user, KnownLoad load) {
  size_t bytes = 0;
  for (const v1::LoadWarning& warning : load.warnings) bytes += warning.ByteSizeLong();
  if (bytes > kMostWarningBytes) return;
  if (load.hit && load.hit->result.ByteSizeLong() > kMostHitBytes) load.hit.reset();
  const MutexLock lock(mutex_);
  if (loads_.size() >= limit_ && !loads_.contains(request)) DropOfLargest();
  if (load.hit && !ShareHeaders(*load.hit)) load.hit.reset();
  loads_.insert_or_assign(request, Kept{user, std::make_shared<const KnownLoad>(std::move(load))});
}

void KnownLoads::DropOfLargest() {
  absl::flat_hash_map<UserId, size_t> counts;
  for (const auto& [request, kept] : loads_) ++counts[kept.user];
  const auto largest =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest == counts.end()) return;
  absl::erase_if(loads_, [&](const auto& entry) { return entry.second.user == largest->first; });
  std::erase_if(header_lists_, [](const FileLook::Files& list) { return list.use_count() == 1; });
}

bool KnownLoads::ShareHeaders(KnownHit& hit) {
  for (const FileLook::Files& list : header_lists_) {
    if (*list != *hit.headers) continue;
    hit.headers = list;
    return true;
  }
  if (header_lists_.size() >= kMostHeaderLists) DropOfLargest();
  if (header_lists_.size() >= kMostHeaderLists) return false;
  header_lists_.push_back(hit.headers);
  return true;
}

}  // namespace kernix::build
