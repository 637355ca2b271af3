// SPDX-License-Identifier: Apache-2.0
//
// The artifact cache: an ActionCache and a BlobStore, with the Journal's books over both. This is what ties them:
//
// Crash safety: a blob is on the disk before the action cache names it. A blob that no entry names is garbage and is
// removed at the next start; an entry whose blob is missing or damaged is dropped when it is met.
//
// Lifetime: a blob goes only when no entry names it, no Insert() is between storing it and committing its entry (it is
// then pinned), and no client was told of it within the lend time (it is then lent).
//
// On disk:
//
//   <directory>/version                 the layout's number
//   <directory>/artifacts/abcd....so    content, by SHA-256; read-only once there
//   <directory>/private/                0700; what follows is for the store's owner alone
//     lock, owner                       held by the one process that uses the store, and who that is
//     index.sqlite                      WAL. Who can open its files can hold up every commit
//     tmp/                              scratch folders; emptied at start
//
// Others, where the folder's mode lets them in, can open an artifact whose digest they know, and not list them. A store
// of layout 1 (see old_store.h) is taken over.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/cache/action_cache.h"
#include "daemon/cache/blob_store.h"
#include "daemon/cache/journal.h"

namespace kernix::cache {

struct PurgeFilter {
  std::optional<std::string> name;
  std::optional<UserId> owner;
  std::optional<uint64_t> not_used_for_ms;
};

// In entries as List() counts them.
struct PurgeResult {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

struct CacheStats {
  // Since the store was made.
  uint64_t builds = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t joined = 0;
  uint64_t failures = 0;
  uint64_t evictions = 0;
  uint64_t cancelled = 0;
  // Now.
  uint64_t entries = 0;  // as List() counts them
  uint64_t bytes = 0;
};

struct CacheOptions {
  std::string directory;
  uint64_t limit_bytes = 10ull << 30;
  // How long the blob of an artifact stays after Find() or Insert() gave it out, though its entry may go: time for the
  // client to open it. What is left over goes with a Flush() after that, or at the next start.
  Duration lend_time{0};
};

// What a cache is made of. They may share an implementation.
struct CacheParts {
  std::shared_ptr<ActionCache> actions;
  std::shared_ptr<BlobStore> blobs;
  std::shared_ptr<Journal> journal;
  std::unique_ptr<FileLock> lock;  // held as long as the cache lives; may be null
};

// Thread-safe. Only the daemon writes to its parts.
class Cache {
 public:
  // Opens the store in a folder, which is made when absent (mode 0700; the folder's mode decides who can open
  // artifacts). RESOURCE errors, naming the path: cannot be made or written; held by another kernixd (status code
  // kUnavailable); a layout of a newer kernix; holds files of somebody else under the names above. A damaged index is
  // moved aside (kept, with a warning in the log) and a new one started.
  static absl::StatusOr<std::unique_ptr<Cache>> Open(Env& env, CacheOptions options);

  // A cache of other parts. Clears up after a crash, and fits them to the limit.
  static absl::StatusOr<std::unique_ptr<Cache>> Make(Env& env, CacheOptions options, CacheParts parts);

  ~Cache() { FlushIfPossible(); }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // The entry of `key`, or nullopt. Its artifact is there, whole; an entry whose blob is missing or damaged is dropped.
  // A blob that cannot be read just now (no descriptor left, a failing disk) is an error, and its entry stays. Does not
  // count as a use.
  absl::StatusOr<std::optional<Entry>> Find(const Digest& key);

  // Notes a hit for the entry (last use, hits, one more label if `label` is new) and counts it. Cheap: written to disk
  // later, at the latest by Flush().
  void Touch(const Digest& key, const Label& label);

  // Notes the label alone, likewise: for all who waited for one build, which was made under the name of one of them.
  void AddLabel(const Digest& key, const Label& label);

  // `user` was given `artifact`, and is about to open or to fetch it: for the lend time it is theirs (see Owns()) and
  // its blob stays, whatever becomes of the entry. Call it before the user hears of it.
  void Lend(const Digest& artifact, UserId user);

  // Whether `user` has an entry of `artifact`, including one that is not on the disk yet, or was given it just now.
  absl::StatusOr<bool> Owns(UserId user, const Digest& artifact);

  // Stores `artifact` and commits `entry` (whose artifact, size and time are filled in) under `label`, replacing an
  // older entry of the same key (whose labels stay), counts a build, and evicts down to the limit, never the entry just
  // made. When this returns OK, the entry survives kill -9 and power loss.
  absl::Status Insert(Entry entry, const Label& label, std::string_view artifact);

  // Drops one entry (its blob goes when no other entry names it).
  absl::Status Remove(const Digest& key) { return RemoveEntry(key, std::nullopt); }

  // As in BlobStore.
  std::string BlobPath(const Digest& digest) const { return blobs_->PathOf(digest); }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenBlob(const Digest& digest);

  // One for each label that matches, most recently used first.
  absl::StatusOr<std::vector<ListedEntry>> List(const LabelFilter& filter);

  // Takes away the labels that match, and counts them. A key without a label left goes, and its artifact with the last
  // key that names it.
  absl::StatusOr<PurgeResult> Purge(const PurgeFilter& filter);

  // Written to disk later, as Touch(). The cache itself counts kBuilds, kHits and kEvictions.
  void Count(Total total, uint64_t n = 1);
  CacheStats Stats();

  // What this process has counted, and what there is. The registry must not be read once the cache is gone.
  void Register(MetricsRegistry& registry);

  // What earlier processes found out of files outside the store (the compilers'), and what this one has.
  absl::StatusOr<std::vector<KnownFile>> LoadKnownFiles();
  absl::Status SaveKnownFiles(const std::vector<KnownFile>& files);

  // Writes pending uses and totals. Called now and then and at the end.
  absl::Status Flush();

  const std::string& directory() const { return options_.directory; }
  uint64_t limit_bytes() const { return options_.limit_bytes; }
  // A folder for scratch files, emptied at start.
  std::string scratch_directory() const;

 private:
  Cache(Env& env, CacheOptions options, CacheParts parts);

  absl::Status Start();
  absl::Status Wrap(const absl::Status& status) const;
  // Looking and clearing up must work on a full disk, too.
  void FlushIfPossible();
  Totals CountedTotals() const;
  absl::Status RemoveEntry(const Digest& key, const std::optional<Digest>& artifact);
  absl::Status Commit(const Entry& entry, const Label& label);
  absl::Status EvictAllBut(const std::optional<Digest>& keep);

  void Pin(const Digest& artifact);
  void Unpin(const Digest& artifact);
  void RemoveBlobs(const std::vector<Digest>& artifacts);
  void RemoveBlob(const Digest& artifact) ABSL_EXCLUSIVE_LOCKS_REQUIRED(blobs_mutex_);

  // Until then the blob stays, and these users may have it.
  struct Loan {
    MonotonicTime until;
    std::set<UserId> users;
  };
  void Lend(const Digest& artifact, const std::optional<UserId>& user);
  bool IsLentTo(UserId user, const Digest& artifact);
  std::vector<Digest> Returned(MonotonicTime now);
  void RemoveReturned();

  Env& env_;
  const CacheOptions options_;
  const std::unique_ptr<FileLock> lock_;  // goes last
  const std::shared_ptr<ActionCache> actions_;
  const std::shared_ptr<BlobStore> blobs_;
  const std::shared_ptr<Journal> journal_;
  Totals before_{};  // what earlier processes counted
  std::array<MetricCounter, kTotalCount> counted_;

  Mutex blobs_mutex_;  // held while a blob is removed, so that a pin made before keeps it
  absl::flat_hash_map<Digest, int> pins_ ABSL_GUARDED_BY(blobs_mutex_);
  absl::flat_hash_map<Digest, Loan> loans_ ABSL_GUARDED_BY(blobs_mutex_);
};

}  // namespace kernix::cache
