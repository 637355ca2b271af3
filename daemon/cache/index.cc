// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index.h"

#include <utility>

#include "common/base/status_macros.h"
#include "daemon/cache/index_statements.h"

namespace kernix::cache {
namespace {

absl::StatusOr<IndexTotals> ReadTotals(Database& database) {
  IndexTotals totals;
  KERNIX_ASSIGN_OR_RETURN(totals.labels, database.QueryInt("SELECT count(*) FROM label"));
  KERNIX_ASSIGN_OR_RETURN(
      totals.bytes,
      database.QueryInt("SELECT coalesce(sum(size), 0) FROM (SELECT DISTINCT artifact, size FROM entry)"));
  return totals;
}

}  // namespace

Index::Index(std::unique_ptr<IndexWriter> writer, std::unique_ptr<IndexReader> reader, IndexTotals totals)
    : writer_(std::move(writer)), totals_(totals), reader_(std::move(reader)) {}

Index::~Index() = default;

absl::StatusOr<std::unique_ptr<Index>> Index::Open(const std::string& path) {
  auto writer = std::make_unique<IndexWriter>();
  KERNIX_RETURN_IF_ERROR(writer->Open(path));
  auto reader = std::make_unique<IndexReader>();
  KERNIX_RETURN_IF_ERROR(reader->Open(path));
  KERNIX_ASSIGN_OR_RETURN(const IndexTotals totals, ReadTotals(writer->database()));
  return std::unique_ptr<Index>(new Index(std::move(writer), std::move(reader), totals));
}

absl::StatusOr<std::optional<Entry>> Index::Find(const Digest& key) {
  const MutexLock lock(read_mutex_);
  return reader_->Find(key);
}

absl::StatusOr<std::vector<Entry>> Index::List(const ListFilter& filter) {
  const MutexLock lock(read_mutex_);
  return reader_->List(filter);
}

absl::StatusOr<std::vector<Digest>> Index::KeysOf(const Digest& artifact) {
  const MutexLock lock(read_mutex_);
  return reader_->KeysOf(artifact);
}

absl::StatusOr<bool> Index::HasLabelOf(uid_t owner, const Digest& artifact) {
  const MutexLock lock(read_mutex_);
  return reader_->HasLabelOf(owner, artifact);
}

absl::StatusOr<absl::flat_hash_set<Digest>> Index::Artifacts() {
  const MutexLock lock(read_mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> artifacts, reader_->Artifacts());
  return absl::flat_hash_set<Digest>(artifacts.begin(), artifacts.end());
}

absl::StatusOr<bool> Index::IsNamed(const Digest& artifact) {
  const MutexLock lock(read_mutex_);
  return reader_->IsNamed(artifact);
}

absl::StatusOr<Counters> Index::ReadCounters() {
  const MutexLock lock(read_mutex_);
  return reader_->ReadCounters();
}

IndexTotals Index::Totals() {
  const MutexLock lock(write_mutex_);
  return totals_;
}

absl::StatusOr<Dropped> Index::Insert(const Entry& entry, const PendingChanges& pending, uint64_t limit_bytes) {
  const MutexLock lock(write_mutex_);
  IndexTotals totals = totals_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  KERNIX_RETURN_IF_ERROR(ApplyPending(pending, totals));
  Dropped replaced;
  KERNIX_RETURN_IF_ERROR(DropRow(entry.key, replaced, totals));
  KERNIX_RETURN_IF_ERROR(Put(entry, totals));
  KERNIX_RETURN_IF_ERROR(writer_->Count(Counter::kBuilds, 1));
  Dropped evicted;
  KERNIX_RETURN_IF_ERROR(EvictTo(limit_bytes, &entry.key, evicted, totals));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  totals_ = totals;
  // Being replaced is no eviction, but the old artifact may be nobody's now.
  for (const Digest& artifact : replaced.artifacts) {
    if (artifact != entry.artifact) evicted.artifacts.push_back(artifact);
  }
  return evicted;
}

absl::StatusOr<Dropped> Index::Evict(uint64_t limit_bytes) {
  const MutexLock lock(write_mutex_);
  Dropped dropped;
  IndexTotals totals = totals_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  KERNIX_RETURN_IF_ERROR(EvictTo(limit_bytes, nullptr, dropped, totals));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  totals_ = totals;
  return dropped;
}

absl::StatusOr<Dropped> Index::Remove(const Digest& key, const std::optional<Digest>& artifact) {
  const MutexLock lock(write_mutex_);
  Dropped dropped;
  IndexTotals totals = totals_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  if (artifact.has_value()) {
    KERNIX_ASSIGN_OR_RETURN(const std::optional<RowLinks> links, writer_->Links(key));
    if (!links.has_value() || links->artifact != *artifact) return dropped;
  }
  KERNIX_RETURN_IF_ERROR(Drop(key, dropped, totals));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  totals_ = totals;
  return dropped;
}

absl::StatusOr<Dropped> Index::Purge(const std::optional<std::string>& name, const std::optional<uid_t>& owner,
                                     const std::optional<int64_t>& unused_since_unix_ms) {
  const MutexLock lock(write_mutex_);
  Dropped dropped;
  IndexTotals totals = totals_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  KERNIX_ASSIGN_OR_RETURN(dropped.labels, writer_->DropLabels(name, owner, unused_since_unix_ms));
  totals.labels -= dropped.labels;
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> keys, writer_->Unlabelled());
  for (const Digest& key : keys) KERNIX_RETURN_IF_ERROR(DropRow(key, dropped, totals));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  totals_ = totals;
  return dropped;
}

absl::StatusOr<std::vector<KnownFile>> Index::LoadKnownFiles() {
  const MutexLock lock(write_mutex_);
  KERNIX_RETURN_IF_ERROR(writer_->TidyKnownFiles());
  return writer_->KnownFiles();
}

absl::Status Index::SaveKnownFiles(const std::vector<KnownFile>& files) {
  const MutexLock lock(write_mutex_);
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  for (const KnownFile& file : files) KERNIX_RETURN_IF_ERROR(writer_->PutKnownFile(file));
  return transaction.Commit();
}

absl::Status Index::Apply(const PendingChanges& pending) {
  const MutexLock lock(write_mutex_);
  IndexTotals totals = totals_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  KERNIX_RETURN_IF_ERROR(ApplyPending(pending, totals));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  totals_ = totals;
  return absl::OkStatus();
}

absl::Status Index::ApplyPending(const PendingChanges& pending, IndexTotals& totals) {
  KERNIX_ASSIGN_OR_RETURN(const uint64_t labels, writer_->Apply(pending));
  totals.labels += labels;
  return absl::OkStatus();
}

absl::Status Index::Put(const Entry& entry, IndexTotals& totals) {
  KERNIX_ASSIGN_OR_RETURN(const bool shares_artifact, writer_->IsNamed(entry.artifact));
  KERNIX_RETURN_IF_ERROR(writer_->Put(entry));
  KERNIX_ASSIGN_OR_RETURN(const bool new_label, writer_->PutLabel(entry.key, entry.label));
  if (new_label) totals.labels += 1;
  if (!shares_artifact) totals.bytes += entry.size;
  return absl::OkStatus();
}

absl::Status Index::Drop(const Digest& key, Dropped& dropped, IndexTotals& totals) {
  KERNIX_ASSIGN_OR_RETURN(const uint64_t labels, writer_->DropLabelsOf(key));
  totals.labels -= labels;
  dropped.labels += labels;
  return DropRow(key, dropped, totals);
}

absl::Status Index::DropRow(const Digest& key, Dropped& dropped, IndexTotals& totals) {
  KERNIX_ASSIGN_OR_RETURN(const std::optional<RowLinks> links, writer_->Links(key));
  if (!links.has_value()) return absl::OkStatus();
  KERNIX_RETURN_IF_ERROR(writer_->Drop(key, links->header_set));
  KERNIX_ASSIGN_OR_RETURN(const bool still_named, writer_->IsNamed(links->artifact));
  if (still_named) return absl::OkStatus();
  totals.bytes -= links->size;
  dropped.bytes += links->size;
  dropped.artifacts.push_back(links->artifact);
  return absl::OkStatus();
}

absl::Status Index::EvictTo(uint64_t limit_bytes, const Digest* keep, Dropped& dropped, IndexTotals& totals) {
  uint64_t evicted = 0;
  while (totals.bytes > limit_bytes) {
    KERNIX_ASSIGN_OR_RETURN(const std::optional<Digest> oldest, writer_->OldestBut(keep));
    if (!oldest.has_value()) break;
    KERNIX_RETURN_IF_ERROR(Drop(*oldest, dropped, totals));
    ++evicted;
  }
  return writer_->Count(Counter::kEvictions, evicted);
}

}  // namespace kernix::cache
