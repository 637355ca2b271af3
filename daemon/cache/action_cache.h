// SPDX-License-Identifier: Apache-2.0
//
// Maps each key to the artifact that answers it.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "daemon/cache/blob_store.h"
#include "daemon/cache/entry.h"

namespace kernix::cache {

// What has an origin can be taken again: nobody waits for the disk.
inline Durability DurabilityOf(const Entry& entry) {
  return entry.origin.empty() ? Durability::kSurvives : Durability::kMayBeLost;
}

// Thread-safe. Does not handle the artifacts' bytes: those are in a BlobStore.
class ActionCache {
 public:
  virtual ~ActionCache() = default;

  // nullopt: a miss.
  virtual absl::StatusOr<std::optional<Entry>> Find(const Digest& key) = 0;

  // Commits `entry` under `tag`, and counts a build, or a hit of the upstream. Replaces an older entry of the same key,
  // whose other tags stay. Once this has returned OK, the entry survives kill -9 and, as DurabilityOf() says, power
  // loss.
  virtual absl::StatusOr<Dropped> Put(const Entry& entry, const Tag& tag) = 0;

  // Removes the entry with all of its tags. Does nothing if the entry is gone or, with `artifact` given, if it names
  // another artifact by now.
  virtual absl::StatusOr<Dropped> Remove(const Digest& key, const std::optional<Digest>& artifact) = 0;
};

}  // namespace kernix::cache
