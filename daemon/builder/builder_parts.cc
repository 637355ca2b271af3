// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/builder_parts.h"

#include <utility>
#include <vector>

#include "common/base/log.h"
#include "daemon/builder/toolchain_headers.h"

namespace kernix::build {

std::optional<KnownHit> BuilderParts::Find(const KnownLoad& load, UserId owner) {
  const uint64_t cache_changes = cache.changes(load.key);  // before the entry is read
  const absl::StatusOr<std::optional<cache::Entry>> entry = cache.Find(load.key);
  if (!entry.ok()) {
    // The load can still be served by a build. Whether the store accepts its result will show later.
    Log(LogLevel::kWarning, "cache_lookup_failed", {{"error", entry.status().ToString()}});
    return std::nullopt;
  }
  auto headers = std::make_shared<std::vector<WatchedFile>>();
  if (!entry->has_value() ||
      ChangedToolchainHeader(toolchains.digests(), *load.toolchain, (*entry)->toolchain_headers, *headers)) {
    return std::nullopt;
  }
  cache.Lend((*entry)->artifact, owner);
  KnownHit hit{ResultOf(load, **entry), (*entry)->artifact, std::move(headers), cache_changes};
  hit.result.set_cache_hit(true);
  return hit;
}

std::optional<v1::LoadResult> BuilderParts::FindAndCount(const PlannedLoad& load) {
  if (load.force) return std::nullopt;
  std::optional<KnownHit> hit = Find(*load.known, load.tag.owner);
  if (!hit) return std::nullopt;
  cache.Touch(load.key(), load.tag);
  return std::move(hit->result);
}

v1::LoadResult BuilderParts::ResultOf(const KnownLoad& load, const cache::Entry& entry) const {
  v1::LoadResult result;
  result.set_key(load.key.Raw());
  result.set_artifact_digest(entry.artifact.Raw());
  result.set_artifact_size(entry.size);
  result.set_artifact_path(cache.BlobPath(entry.artifact));
  result.mutable_function()->Assign(entry.functions.begin(), entry.functions.end());
  for (const std::string& version : entry.required_symbol_versions) result.add_required_symbol_versions(version);
  for (const v1::LoadWarning& warning : load.warnings) *result.add_warning() = warning;
  for (std::string& path : OtherFiles(*load.toolchain, entry.toolchain_headers)) {
    result.add_other_file(std::move(path));
  }
  return result;
}

}  // namespace kernix::build
