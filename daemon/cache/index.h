// SPDX-License-Identifier: Apache-2.0
//
// The index of a store: which action key is answered by which artifact, in SQLite.
//
// Every change is one transaction that is on the disk when the call returns OK. The index knows nothing of files: it
// tells its owner which artifacts no entry names any more.
#pragma once

#include <array>
#include <cstdint>
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
#include "daemon/cache/cache.h"

namespace kernix::cache {

inline constexpr size_t kCounterCount = 7;
static_assert(static_cast<size_t>(Counter::kCancelled) == kCounterCount - 1);

using Counters = std::array<uint64_t, kCounterCount>;

// Uses and counts that have not been written yet.
struct PendingChanges {
  struct Use {
    int64_t last_used_unix_ms = 0;
    uint64_t hits = 0;
    std::set<Label> labels;
  };
  absl::flat_hash_map<Digest, Use> uses;  // by key
  Counters counters{};

  bool empty() const { return uses.empty() && counters == Counters{}; }
};

// What a change took out of the index.
struct Dropped {
  uint64_t labels = 0;
  uint64_t bytes = 0;             // of `artifacts`
  std::vector<Digest> artifacts;  // named by no entry any more
};

struct IndexTotals {
  uint64_t labels = 0;
  uint64_t bytes = 0;  // every artifact counted once
};

class IndexReader;
class IndexWriter;

// Thread-safe. Find() and List() do not wait for the disk that a change waits for.
class Index {
 public:
  // Opens or makes the file and brings it to the newest layout. kDataLoss when it is damaged, kFailedPrecondition when
  // a newer kernix made it.
  static absl::StatusOr<std::unique_ptr<Index>> Open(const std::string& path);

  absl::StatusOr<std::optional<Entry>> Find(const Digest& key);

  // One for each label that matches, most recently used first.
  absl::StatusOr<std::vector<Entry>> List(const ListFilter& filter);

  // Of the entries that name `artifact`.
  absl::StatusOr<std::vector<Digest>> KeysOf(const Digest& artifact);
  // Whether one of them has a label of `owner`.
  absl::StatusOr<bool> HasLabelOf(uid_t owner, const Digest& artifact);

  // All that is named.
  absl::StatusOr<absl::flat_hash_set<Digest>> Artifacts();

  // Whether a committed entry names `artifact`.
  absl::StatusOr<bool> IsNamed(const Digest& artifact);

  // Writes `entry`, replacing one of the same key but for its labels, counts a build, applies `pending`, and drops the
  // least recently used entries, never `entry`, until the artifacts fit into `limit_bytes` or nothing else is left.
  // What was dropped for room is counted as evicted.
  absl::StatusOr<Dropped> Insert(const Entry& entry, const PendingChanges& pending, uint64_t limit_bytes);

  // The same without a new entry.
  absl::StatusOr<Dropped> Evict(uint64_t limit_bytes);

  // Nothing happens when the entry is gone or, where one is given, names another artifact by now.
  absl::StatusOr<Dropped> Remove(const Digest& key, const std::optional<Digest>& artifact);

  // Drops the labels that match all that is set, of entries last used before `unused_since_unix_ms`, and the entries
  // that have none left.
  absl::StatusOr<Dropped> Purge(const std::optional<std::string>& name, const std::optional<uid_t>& owner,
                                const std::optional<int64_t>& unused_since_unix_ms);

  // Uses of entries that are gone are ignored.
  absl::Status Apply(const PendingChanges& pending);

  // Files outside the store, by path. When they have become too many, from compilers long gone, all are forgotten.
  absl::StatusOr<std::vector<KnownFile>> LoadKnownFiles();
  absl::Status SaveKnownFiles(const std::vector<KnownFile>& files);

  absl::StatusOr<Counters> ReadCounters();
  IndexTotals Totals();

  ~Index();

 private:
  Index(std::unique_ptr<IndexWriter> writer, std::unique_ptr<IndexReader> reader, IndexTotals totals);

  // Within a transaction. Each adds to `dropped` and keeps `totals` right.
  absl::Status Put(const Entry& entry, IndexTotals& totals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status ApplyPending(const PendingChanges& pending, IndexTotals& totals)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // The row alone; its labels stay.
  absl::Status DropRow(const Digest& key, Dropped& dropped, IndexTotals& totals)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Drop(const Digest& key, Dropped& dropped, IndexTotals& totals)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status EvictTo(uint64_t limit_bytes, const Digest* keep, Dropped& dropped, IndexTotals& totals)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  Mutex write_mutex_;
  const std::unique_ptr<IndexWriter> writer_ ABSL_PT_GUARDED_BY(write_mutex_);
  IndexTotals totals_ ABSL_GUARDED_BY(write_mutex_);  // of what is committed

  Mutex read_mutex_;
  const std::unique_ptr<IndexReader> reader_ ABSL_PT_GUARDED_BY(read_mutex_);
};

}  // namespace kernix::cache
