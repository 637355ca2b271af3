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
#include "common/base/mutex.h"
#include "daemon/cache/blob_store.h"
#include "daemon/cache/journal.h"

namespace kernix::cache {

class IndexReader;
class IndexWriter;
class Transaction;

// Thread-safe. Find(), List() and Recent() do not wait for the disk while a change does, and Find() does not
// wait for the other two.
class Index final : public ActionCache, public Journal {
 public:
  // Opens or creates the file. kDataLoss if it is damaged, kFailedPrecondition if
  // another kernix made it.
  static absl::StatusOr<std::shared_ptr<Index>> Open(const std::string& path);
  ~Index() override;

  absl::StatusOr<std::optional<Entry>> Find(const Digest& key) override;
  absl::StatusOr<Dropped> Put(const Entry& entry, const Tag& tag) override;
  absl::StatusOr<Dropped> Remove(const Digest& key, const std::optional<Digest>& artifact) override;

  void AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms) override;
  void AddTag(const Digest& key, const Tag& tag) override;
  absl::Status Flush(const Totals& totals) override;
  absl::StatusOr<std::vector<ListedEntry>> List(const TagFilter& filter) override;
  absl::StatusOr<std::vector<BuiltFrom>> Recent(const Tag& tag, size_t limit) override;
  absl::StatusOr<std::string> TraceOf(const Digest& key) override;
  absl::StatusOr<bool> HasTagOf(UserId owner, const Digest& artifact) override;
  absl::StatusOr<Dropped> Purge(const TagFilter& filter) override;
  absl::StatusOr<Dropped> Evict(const Limits& limits, const std::optional<Digest>& keep) override;
  absl::StatusOr<uint64_t> HeldBy(UserId user) override;
  absl::StatusOr<bool> IsNamed(const Digest& artifact) override;
  absl::StatusOr<absl::flat_hash_set<Digest>> Artifacts() override;
  Holdings holdings() override;
  absl::StatusOr<Totals> LoadTotals() override;
  absl::StatusOr<std::vector<KnownFile>> LoadKnownFiles() override;
  absl::Status SaveKnownFiles(const std::vector<KnownFile>& files) override;

 private:
  // The committed state, kept so that it need not be read from the file.
  struct Books {
    Holdings holdings;
    Totals totals{};
    // See HeldBy(). Counted when it is needed first: in a large store, that takes a second.
    std::optional<std::map<UserId, uint64_t>> of_users;

    bool Exceed(const Limits& limits, uint64_t of_user) const {
      return holdings.bytes() > limits.bytes || (limits.bytes_per_user > 0 && of_user > limits.bytes_per_user);
    }
    bool Exceed(const Limits& limits) const;
  };

  struct Victim {
    UserId user;
    Digest key;
  };

  Index(std::unique_ptr<IndexWriter> writer, std::unique_ptr<IndexReader> reader, std::unique_ptr<IndexReader> lister,
        const Books& books);
  static absl::StatusOr<Books> ReadBooks(IndexWriter& writer);
  // Notes in `books` what the index has in use by now.
  static absl::Status Measure(IndexWriter& writer, Books& books);

  absl::Status Write(const PendingUses& uses, const Totals& totals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::StatusOr<Dropped> EvictTo(const Limits& limits, const std::optional<Digest>& keep, const PendingUses& uses)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status CountHolders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::StatusOr<std::optional<Victim>> FindVictim(const Limits& limits, const std::optional<Digest>& keep,
                                                   const Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  // Ends a transaction: `books` are the index's from then on.
  absl::Status Commit(Transaction& transaction, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  // These run within a transaction. Each keeps `books` right; those that drop something add it to `dropped`.
  absl::Status PutRow(const Entry& entry, const Tag& tag, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Apply(const PendingUses& uses, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Count(Total total, uint64_t n, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Drop(const Digest& key, Dropped& dropped, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Take(const Victim& victim, Dropped& dropped, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Drops only the row; its tags stay.
  absl::Status DropRow(const Digest& key, Dropped& dropped, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  // Around each change of an entry or of its tags. ChargeOrDrop() drops the row of an entry without a tag.
  absl::Status Uncharge(const Digest& key, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Charge(const Digest& key, Books& books) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status ChargeOrDrop(const Digest& key, Dropped& dropped, Books& books)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  PendingUseBuffer pending_;

  Mutex write_mutex_;
  const std::unique_ptr<IndexWriter> writer_ ABSL_PT_GUARDED_BY(write_mutex_);
  Books books_ ABSL_GUARDED_BY(write_mutex_);

  Mutex read_mutex_;
  const std::unique_ptr<IndexReader> reader_ ABSL_PT_GUARDED_BY(read_mutex_);

  Mutex list_mutex_;
  const std::unique_ptr<IndexReader> lister_ ABSL_PT_GUARDED_BY(list_mutex_);
};

}  // namespace kernix::cache
