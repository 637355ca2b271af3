// SPDX-License-Identifier: Apache-2.0
//
// The interfaces below the cache: a store of blobs, and of the results of actions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "daemon/cache/entry.h"

namespace kernix::cache {

// What a power failure may damage.
enum class Durability {
  kSurvives,
  kMayBeLost,  // does not wait for the disk; later, the blob may be damaged, which IsSound() and Open() see
};

// Thread-safe. Does not know who needs a blob: its owner must keep a Remove() from racing with a Put() of the same
// content.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // The path at which a process of this host finds the blob, whether or not it exists. Empty: only Open() can read it.
  virtual std::string PathOf(const Digest& digest) const = 0;

  // Returns once `content` is stored, and survives the end of this process. Keeps a sound blob that already exists;
  // replaces any other.
  virtual absl::Status Put(const Digest& digest, std::string_view content, Durability durability) = 0;

  // Whether the blob exists with the right size and content. A blob that cannot be examined (no descriptor left, a
  // failing disk) is an error, which says nothing about the content.
  virtual absl::StatusOr<bool> IsSound(const Digest& digest, uint64_t size) = 0;

  // Opens the blob for reading piece by piece, even if it is removed meanwhile. kNotFound if there is no such blob,
  // kDataLoss if its content does not match its digest.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const Digest& digest) = 0;

  // OK if there is no such blob.
  virtual absl::Status Remove(const Digest& digest) = 0;

  // Removes everything that is not in `keep`. Call only at the start, while nothing else uses the store.
  virtual absl::Status RemoveAllBut(const absl::flat_hash_set<Digest>& keep) = 0;
};

// Maps each key to the artifact that answers it.

// A blob with an origin can be fetched again: nobody waits for the disk.
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
