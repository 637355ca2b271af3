// SPDX-License-Identifier: Apache-2.0
//
// The action cache and the journal of a store, in one SQLite file: the additions of a build to both are one
// transaction.
//
// Every change is on disk when the call returns OK, except uses and tags, which wait in memory for the next Flush() or
// Evict(). The index does not handle blobs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/file_identity.h"
#include "daemon/cache/entry.h"
#include "daemon/cache/journal.h"
#include "daemon/cache/sqlite.h"

namespace kernix::cache {

// Thread-safe. Find(), List() and Recent() do not wait for the disk while a change does. Find() does not wait for the
// other two, and Recent(), which loads need, does not wait for List().
class Index {
 public:
  // Opens or creates the file. kDataLoss if it is damaged, kFailedPrecondition if
  // another kernix made it.
  static absl::StatusOr<std::unique_ptr<Index>> Open(const std::string& path);

  // --- The action cache: maps each key to the artifact that answers it.

  // nullopt: a miss.
  absl::StatusOr<std::optional<Entry>> Find(const Digest& key);

  // Commits `entry` under `tag`. Replaces an older entry of the same key, whose other tags stay. Once this has returned
  // OK, the entry survives kill -9 and power loss.
  absl::StatusOr<Dropped> Put(const Entry& entry, const Tag& tag);

  // Removes the entry with all of its tags. Does nothing if the entry is gone or, with `artifact` given, if it names
  // another artifact by now.
  absl::StatusOr<Dropped> Remove(const Digest& key, const std::optional<Digest>& artifact);

  // --- The journal

  // Notes a hit for `key` under `tag`. Cheap: on disk later, at the latest by Flush(). The same holds for AddTag(),
  // which notes only the tag. Both are ignored if the key has no entry by then, or if the owner already has
  // kMaxTagsPerOwner tags for the key.
  void AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms);
  void AddTag(const Digest& key, const Tag& tag);

  // Writes the uses and tags of AddUse() and AddTag(), and `totals`. If it fails, nothing is lost: the next Flush()
  // writes it. Does not await the disk: power loss may take what is young.
  absl::Status Flush(const Totals& totals);

  // Most recently used first. Does not list tags that are not flushed.
  absl::StatusOr<std::vector<ListedEntry>> List(const TagFilter& filter);

  // How much List() would return.
  absl::StatusOr<ListWeight> Weigh(const TagFilter& filter);

  // The entries of one tag, most recently used first, at most `limit`. Leaves out tags that are not flushed.
  absl::StatusOr<std::vector<BuiltFrom>> Recent(const Tag& tag, size_t limit);

  // Entry::trace of the entry of `key`; empty if there is no such entry.
  absl::StatusOr<std::string> TraceOf(const Digest& key);

  // Whether an entry of `artifact` has a tag of `owner`, whether it is flushed, being flushed, or not yet.
  absl::StatusOr<bool> HasTagOf(UserId owner, const Digest& artifact);

  // Removes the matching tags, and the entries that have none left.
  absl::StatusOr<Dropped> Purge(const TagFilter& filter);

  // Pins the matching tags, so that Evict() takes nothing from their owners in which they have a pinned tag; or unpins
  // them. A filter with an owner is of a user who is no administrator. kOutOfRange, and nothing changes, if more than
  // `limits` would be pinned.
  absl::StatusOr<Pinned> SetPinned(const TagFilter& filter, bool pinned, const PinLimits& limits);

  // As long as artifacts and index, or what a user holds, exceed `limits`: takes from the user who holds most the tags
  // of the entry among theirs that nobody has used for longest. An entry goes with its last tag, but never that of
  // `keep`.
  absl::StatusOr<Dropped> Evict(const Limits& limits, const std::optional<Digest>& keep, int64_t now_unix_ms);

  // What each user holds.
  absl::StatusOr<std::map<UserId, Held>> Holders();

  // Whether an entry names `artifact`, and the keys of those that do; all artifacts that entries name; some of them, in
  // the order of their digests.
  absl::StatusOr<bool> IsNamed(const Digest& artifact);
  absl::StatusOr<std::vector<Digest>> KeysOf(const Digest& artifact);
  absl::StatusOr<absl::flat_hash_set<Digest>> Artifacts();
  absl::StatusOr<std::vector<SizedArtifact>> ArtifactsAfter(const Digest& digest, size_t limit);

  Holdings holdings();

  // A number that grows with each change since Open().
  int64_t changes();

  // As last written.
  Totals totals();

  // Digests of files outside the store (the compilers'), by path. If there are too many, from compilers long gone, all
  // are forgotten.
  absl::StatusOr<std::vector<KnownFile>> LoadKnownFiles();
  absl::Status SaveKnownFiles(const std::vector<KnownFile>& files);

 private:
  // The committed state, kept so that it need not be read from the file.
  struct Books {
    Holdings holdings;
    // Counted when it is needed first: in a large store, that takes a second.
    std::optional<std::map<UserId, Held>> of_users;

    bool Exceed(const Limits& limits, uint64_t of_user) const {
      return holdings.bytes() > limits.bytes || (limits.bytes_per_user > 0 && of_user > limits.bytes_per_user);
    }
    bool Exceed(const Limits& limits) const;
  };

  struct Victim {
    UserId user;
    Digest key;
  };

  Index() = default;
  absl::Status Start(const std::string& path);

  absl::Status Write(const PendingUses& uses, Totals totals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::StatusOr<Dropped> EvictTo(const Limits& limits, const std::optional<Digest>& keep, int64_t now_unix_ms,
                                  const PendingUses& uses) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status CountHolders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::StatusOr<std::optional<Victim>> FindVictim(const Limits& limits, const std::optional<Digest>& keep,
                                                   int64_t now_unix_ms, const Books& books)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  // Ends a transaction: `books` are the index's from then on.
  absl::Status Commit(Transaction& transaction, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  // These run within a transaction. Each keeps `books` right; those that drop something add it to `dropped`.
  absl::Status PutRow(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::StatusOr<int64_t> PutHeaders(const std::string& headers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Does nothing if the tag exists already, if there is no such key, or if the owner has reached the limit of tags for
  // the key.
  absl::Status PutTag(const Digest& key, const Tag& tag, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Apply(const PendingUses& uses, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Drops tags, only those of `owner` if there is one.
  absl::Status DropTags(const Digest& key, std::optional<UserId> owner, Dropped& dropped, Books& books)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Drops only the row; its tags stay.
  absl::Status DropRow(const Digest& key, Dropped& dropped, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Notes what the index has in use by now.
  absl::Status Measure(Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  // Around each change of an entry or of its tags. ChargeOrDrop() drops the row of an entry without a tag.
  absl::Status Uncharge(const Digest& key, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Charge(const Digest& key, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status ChargeOrDrop(const Digest& key, Dropped& dropped, Books& books)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  PendingUseBuffer pending_;

  Mutex write_mutex_;
  Database database_ ABSL_GUARDED_BY(write_mutex_);
  Books books_ ABSL_GUARDED_BY(write_mutex_);
  Totals written_totals_ ABSL_GUARDED_BY(write_mutex_) = {};

  Mutex read_mutex_;
  Database reader_ ABSL_GUARDED_BY(read_mutex_);

  Mutex search_mutex_;
  Database searcher_ ABSL_GUARDED_BY(search_mutex_);

  Mutex list_mutex_;  // of what a user can make long
  Database lister_ ABSL_GUARDED_BY(list_mutex_);
};

}  // namespace kernix::cache
