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
  return found != loads_.end() && found->second->toolchain == toolchain ? found->second : nullptr;
}

void KnownLoads::Add(const Digest& request, KnownLoad load) {
  size_t bytes = 0;
  for (const v1::LoadWarning& warning : load.warnings) bytes += warning.ByteSizeLong();
  if (bytes > kMostWarningBytes) return;
  if (load.hit && load.hit->result.ByteSizeLong() > kMostHitBytes) load.hit.reset();
  const MutexLock lock(mutex_);
  if (loads_.size() >= limit_ && !loads_.contains(request)) Clear();
  if (load.hit) ShareHeaders(*load.hit);
  loads_.insert_or_assign(request, std::make_shared<const KnownLoad>(std::move(load)));
}

void KnownLoads::Clear() {
  loads_.clear();
  header_lists_.clear();
}

void KnownLoads::ShareHeaders(KnownHit& hit) {
  for (const FileLook::Files& list : header_lists_) {
    if (*list != *hit.headers) continue;
    hit.headers = list;
    return;
  }
  if (header_lists_.size() >= kMostHeaderLists) Clear();
  header_lists_.push_back(hit.headers);
}

}  // namespace kernix::build
