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

void KnownLoads::Add(const Digest& request, KnownLoadPtr load) {
  size_t bytes = 0;
  for (const v1::LoadWarning& warning : load->warnings) bytes += warning.ByteSizeLong();
  if (bytes > kMostWarningBytes) return;
  const MutexLock lock(mutex_);
  if (loads_.size() >= limit_ && !loads_.contains(request)) loads_.clear();
  loads_.insert_or_assign(request, std::move(load));
}

}  // namespace kernix::build
