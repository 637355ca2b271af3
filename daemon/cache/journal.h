// SPDX-License-Identifier: Apache-2.0
//
// What the cache writes to its index later, together: the journal, and the uses of entries that wait for it.
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
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/file_identity.h"
#include "daemon/cache/entry.h"

namespace kernix::cache {

// Counts since the store was made. The index stores these numbers.
enum class Total { kBuilds, kHits, kMisses, kJoined, kFailures, kEvictions, kCancelled, kUpstreamHits };
inline constexpr size_t kTotalCount = 8;
using Totals = std::array<uint64_t, kTotalCount>;  // by Total

// The total that counts a new entry.
inline Total TotalOf(const Entry& entry) { return entry.origin.empty() ? Total::kBuilds : Total::kUpstreamHits; }

// An entry in a list: one element for each tag.
struct ListedEntry {
  Entry entry;  // without its toolchain headers
  Tag tag;
  // By any user of the key, under any tag.
  int64_t last_used_unix_ms = 0;
  uint64_t hits = 0;
};

// Matches what fits all fields that are set.
struct TagFilter {
  std::optional<std::string> name;
  std::optional<UserId> owner;
  std::optional<int64_t> unused_since_unix_ms;  // keys that were last used before that time
};

// A module normally has one or two names. If a user makes up thousands for one key, no more of them are noted for that
// user; other users are not affected. So it is with the tags that wait for the next Flush(), of all keys.
inline constexpr int kMaxTagsPerOwner = 1000;
inline constexpr int kMaxPendingTagsPerOwner = 10'000;

// What the cache may hold.
struct Limits {
  uint64_t bytes = 10ull << 30;
  uint64_t bytes_per_user = 0;  // 0: no limit
};

struct Holdings {
  uint64_t tags = 0;
  uint64_t artifact_bytes = 0;  // every artifact counted once
  uint64_t index_bytes = 0;     // what the index has in use beyond a small one

  uint64_t bytes() const { return artifact_bytes + index_bytes; }
};

// Thread-safe.
class Journal {
 public:
  virtual ~Journal() = default;

  // Notes a hit for `key` under `tag`. Cheap: on disk later, at the latest by Flush(). The same holds for AddTag(),
  // which notes only the tag. Both are ignored if the key has no entry by then, or if the owner already has
  // kMaxTagsPerOwner tags for the key.
  virtual void AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms) = 0;
  virtual void AddTag(const Digest& key, const Tag& tag) = 0;

  // Writes the uses and tags of AddUse() and AddTag(), and those of `totals` that are larger than the written ones. If
  // it fails, nothing is lost: the next Flush() writes it. Does not await the disk: power loss may take what is young.
  virtual absl::Status Flush(const Totals& totals) = 0;

  // Most recently used first. Does not list tags that are not flushed.
  virtual absl::StatusOr<std::vector<ListedEntry>> List(const TagFilter& filter) = 0;

  // The entries of one tag, most recently used first, at most `limit`. Leaves out tags that are not flushed.
  virtual absl::StatusOr<std::vector<BuiltFrom>> Recent(const Tag& tag, size_t limit) = 0;

  // Entry::trace of the entry of `key`; empty if there is no such entry.
  virtual absl::StatusOr<std::string> TraceOf(const Digest& key) = 0;

  // Whether an entry of `artifact` has a tag of `owner`, whether it is flushed, being flushed, or not yet.
  virtual absl::StatusOr<bool> HasTagOf(UserId owner, const Digest& artifact) = 0;

  // Removes the matching tags, and the entries that have none left.
  virtual absl::StatusOr<Dropped> Purge(const TagFilter& filter) = 0;

  // As long as artifacts and index, or what a user holds, exceed `limits`: takes from the user who holds most the tags
  // of the entry among theirs that nobody has used for longest. An entry goes with its last tag, but never that of
  // `keep`. Counts evictions.
  virtual absl::StatusOr<Dropped> Evict(const Limits& limits, const std::optional<Digest>& keep) = 0;

  // The bytes of the entries that have a tag of `user`, each in full, and of these tags.
  virtual absl::StatusOr<uint64_t> HeldBy(UserId user) = 0;

  // Whether an entry names `artifact`; all artifacts that entries name.
  virtual absl::StatusOr<bool> IsNamed(const Digest& artifact) = 0;
  virtual absl::StatusOr<absl::flat_hash_set<Digest>> Artifacts() = 0;

  virtual Holdings holdings() = 0;

  // As last written; builds and evictions are current.
  virtual absl::StatusOr<Totals> LoadTotals() = 0;

  // Digests of files outside the store (the compilers'), by path. If there are too many, from compilers long gone, all
  // are forgotten.
  virtual absl::StatusOr<std::vector<KnownFile>> LoadKnownFiles() = 0;
  virtual absl::Status SaveKnownFiles(const std::vector<KnownFile>& files) = 0;
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
