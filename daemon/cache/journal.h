// SPDX-License-Identifier: Apache-2.0
//
// What the index keeps beside entries: tags, uses and totals; and the uses that wait to be written together.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/file_identity.h"
#include "daemon/cache/entry.h"

namespace kernix::cache {

// Counts since the store was made. The index stores these numbers.
enum class Total { kBuilds, kHits, kMisses, kJoined, kFailures, kEvictions, kCancelled, kUpstreamHits };
inline constexpr size_t kTotalCount = 8;
using Totals = std::array<uint64_t, kTotalCount>;  // by Total

// An entry in a list: one element for each tag.
struct ListedEntry {
  Entry entry;  // without its toolchain headers
  Tag tag;
  // By any user of the key, under any tag.
  int64_t last_used_unix_ms = 0;
  uint64_t hits = 0;
  bool pinned = false;
};

// Matches what fits all fields that are set.
struct TagFilter {
  std::optional<std::string> name;
  std::optional<UserId> owner;
  std::string key_prefix = {};                  // of the key's hexadecimal digits
  std::optional<int64_t> unused_since_unix_ms;  // keys that were last used before that time
  bool spares_pinned = false;
};

// A module normally has one or two names. If a user makes up thousands for one key, no more of them are noted for that
// user; other users are not affected. So it is with the tags that wait for the next Flush(), of all keys.
inline constexpr int kMaxTagsPerOwner = 1000;
inline constexpr int kMaxPendingTagsPerOwner = 10'000;

// The elements of a list, before it is read.
struct ListWeight {
  uint64_t entries = 0;
  uint64_t pinned = 0;
  uint64_t bytes = 0;  // roughly, that they take in memory
};

// What the cache may hold.
struct Limits {
  uint64_t bytes = 10ull << 30;
  uint64_t bytes_per_user = 0;  // 0: no limit
};

// How many bytes may be pinned.
struct PinLimits {
  uint64_t bytes = 0;           // by all users together
  uint64_t bytes_per_user = 0;  // by one who is no administrator
};

// What is pinned after a change: the tags that it matched; the bytes of their owner's pins, or, if it matched
// everybody's tags, of all.
struct Pinned {
  uint64_t tags = 0;
  uint64_t bytes = 0;
  uint64_t most_bytes = 0;  // that it may be
};

// What one user holds: the entries that have a tag of that user, each in full, and these tags.
struct Held {
  uint64_t bytes = 0;
  uint64_t tags = 0;

  Held& operator+=(const Held& other) {
    bytes += other.bytes;
    tags += other.tags;
    return *this;
  }
  Held& operator-=(const Held& other) {
    bytes -= other.bytes;
    tags -= other.tags;
    return *this;
  }
};

struct Holdings {
  uint64_t tags = 0;
  uint64_t artifact_bytes = 0;  // every artifact counted once
  uint64_t index_bytes = 0;     // what the index has in use beyond a small one

  uint64_t bytes() const { return artifact_bytes + index_bytes; }
};

// Uses and tags that wait to be written.
struct PendingUse {
  int64_t last_used_unix_ms = 0;
  uint64_t hits = 0;
  std::set<Tag> tags;
};
using PendingUses = absl::flat_hash_map<Digest, PendingUse>;  // by key

// Thread-safe. Notes no more than kMaxPendingTagsPerOwner tags of a user at a time.
class PendingUseBuffer {
 public:
  void AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms);
  void AddTag(const Digest& key, const Tag& tag);

  // Whether a tag of `owner` for `key` is pending or being written.
  bool HasTagOf(UserId owner, const Digest& key) const;

  // Removes and returns everything that is pending, to be written. Call Written() or PutBack() before the next Take().
  std::shared_ptr<const PendingUses> Take();

  // The result of Take() is written.
  void Written();

  // The result of Take() could not be written, and is pending again.
  void PutBack();

 private:
  void Note(PendingUse& use, const Tag& tag) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<UserId, int> tags_of_ ABSL_GUARDED_BY(mutex_);  // in `uses_`
  PendingUses uses_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const PendingUses> taken_ ABSL_GUARDED_BY(mutex_) = std::make_shared<PendingUses>();
};

}  // namespace kernix::cache
