// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/cache.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/cache/blob_store.h"
#include "daemon/cache/index.h"
#include "daemon/cache/pending.h"
#include "daemon/cache/store_folder.h"

namespace kernix::cache {
namespace {

// The facade over index and files. What ties the two: a file may go only while no committed entry names it, no Insert()
// is between writing it and committing (its digest is then pinned), and no client has just been told of it (it is
// lent).
class StoreCache final : public Cache {
 public:
  StoreCache(Env& env, const CacheOptions& options, StorePaths paths, std::unique_ptr<FileLock> lock,
             std::unique_ptr<Index> index)
      : env_(env),
        limit_bytes_(options.limit_bytes),
        lend_time_(options.lend_time),
        paths_(std::move(paths)),
        lock_(std::move(lock)),
        index_(std::move(index)),
        blobs_(env, paths_.blobs) {}

  ~StoreCache() override { FlushIfPossible(); }

  // What a start does once: clears up after a crash, and fits the store to its limit.
  absl::Status Start();

  absl::StatusOr<std::optional<Entry>> Find(const Digest& key) override;
  void Touch(const Digest& key, const Label& label) override { pending_.Use(key, label, env_.UnixMillis()); }
  void AddLabel(const Digest& key, const Label& label) override { pending_.AddLabel(key, label); }
  void Lend(const Digest& artifact, uid_t user) override { Lend(artifact, std::optional(user)); }
  absl::StatusOr<bool> Owns(uid_t user, const Digest& artifact) override;
  absl::Status Insert(Entry entry, std::string_view artifact) override;
  absl::Status Remove(const Digest& key) override { return RemoveEntry(key, std::nullopt); }
  std::string BlobPath(const Digest& digest) const override { return blobs_.PathOf(digest); }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenBlob(const Digest& digest) override;
  absl::StatusOr<std::vector<Entry>> List(const ListFilter& filter) override;
  absl::StatusOr<PurgeResult> Purge(const PurgeFilter& filter) override;
  void Count(Counter counter, uint64_t n) override { pending_.Count(counter, n); }
  absl::StatusOr<v1::GetCacheStatsResponse> Stats() override;
  absl::StatusOr<std::vector<KnownFile>> LoadKnownFiles() override;
  absl::Status SaveKnownFiles(const std::vector<KnownFile>& files) override;
  absl::Status Flush() override;
  const std::string& directory() const override { return paths_.directory; }
  std::string scratch_directory() const override { return paths_.scratch; }

 private:
  absl::Status Wrap(const absl::Status& status) const { return StoreError(paths_.directory, status); }
  // Looking and clearing up must work on a full disk, too.
  void FlushIfPossible();
  absl::Status RemoveEntry(const Digest& key, const std::optional<Digest>& artifact);
  absl::Status Commit(const Entry& entry);
  void Pin(const Digest& artifact);
  void Unpin(const Digest& artifact);
  void RemoveFiles(const std::vector<Digest>& artifacts);
  void RemoveFile(const Digest& artifact) ABSL_EXCLUSIVE_LOCKS_REQUIRED(files_mutex_);
  // Until then the file stays, and these users may have it.
  struct Loan {
    MonotonicTime until;
    std::set<uid_t> users;
  };
  void Lend(const Digest& artifact, std::optional<uid_t> user);
  bool IsLentTo(uid_t user, const Digest& artifact);
  absl::StatusOr<bool> HasEntryOf(uid_t user, const Digest& artifact);
  std::vector<Digest> Returned(MonotonicTime now);
  void RemoveReturned();

  Env& env_;
  const uint64_t limit_bytes_;
  const Duration lend_time_;
  const StorePaths paths_;
  const std::unique_ptr<FileLock> lock_;
  const std::unique_ptr<Index> index_;
  BlobStore blobs_;
  Pending pending_;

  Mutex files_mutex_;  // held while a file is removed, so that a pin made before keeps it
  absl::flat_hash_map<Digest, int> pins_ ABSL_GUARDED_BY(files_mutex_);
  absl::flat_hash_map<Digest, Loan> loans_ ABSL_GUARDED_BY(files_mutex_);
};

absl::Status StoreCache::Start() {
  const absl::StatusOr<Dropped> evicted = index_->Evict(limit_bytes_);
  if (!evicted.ok()) return Wrap(evicted.status());
  const absl::StatusOr<absl::flat_hash_set<Digest>> named = index_->Artifacts();
  if (!named.ok()) return Wrap(named.status());
  return Wrap(blobs_.RemoveAllBut(*named));
}

absl::StatusOr<std::optional<Entry>> StoreCache::Find(const Digest& key) {
  absl::StatusOr<std::optional<Entry>> entry = index_->Find(key);
  if (!entry.ok()) return Wrap(entry.status());
  if (!entry->has_value()) return entry;
  Lend((*entry)->artifact, std::nullopt);  // before we look, so that what we see stays
  const absl::StatusOr<bool> sound = blobs_.IsSound((*entry)->artifact, (*entry)->size);
  if (!sound.ok()) return Wrap(sound.status());
  if (*sound) return entry;
  Log(LogLevel::kWarning, "cache-artifact-unusable", {{"path", BlobPath((*entry)->artifact)}, {"key", key.Hex()}});
  KERNIX_RETURN_IF_ERROR(RemoveEntry(key, (*entry)->artifact));
  return std::nullopt;
}

absl::Status StoreCache::Insert(Entry entry, std::string_view artifact) {
  entry.artifact = DigestOf(artifact);
  entry.size = artifact.size();
  entry.created_unix_ms = entry.last_used_unix_ms = env_.UnixMillis();
  entry.hits = 0;
  Pin(entry.artifact);
  absl::Status status = blobs_.Put(entry.artifact, artifact);
  if (status.ok()) status = Commit(entry);
  if (status.ok()) Lend(entry.artifact, std::nullopt);
  Unpin(entry.artifact);
  if (!status.ok()) RemoveFiles({entry.artifact});
  return Wrap(status);
}

absl::Status StoreCache::Commit(const Entry& entry) {
  PendingChanges changes = pending_.Take();
  absl::StatusOr<Dropped> dropped = index_->Insert(entry, changes, limit_bytes_);
  if (!dropped.ok()) {
    pending_.PutBack(changes);
    return dropped.status();
  }
  RemoveFiles(dropped->artifacts);
  return absl::OkStatus();
}

absl::Status StoreCache::RemoveEntry(const Digest& key, const std::optional<Digest>& artifact) {
  absl::StatusOr<Dropped> dropped = index_->Remove(key, artifact);
  if (!dropped.ok()) return Wrap(dropped.status());
  RemoveFiles(dropped->artifacts);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ReadableFile>> StoreCache::OpenBlob(const Digest& digest) {
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = blobs_.Open(digest);
  if (file.ok() || absl::IsNotFound(file.status())) return file;
  return Wrap(file.status());
}

absl::StatusOr<bool> StoreCache::Owns(uid_t user, const Digest& artifact) {
  if (IsLentTo(user, artifact)) return true;
  absl::StatusOr<bool> has_entry = HasEntryOf(user, artifact);
  if (!has_entry.ok()) return Wrap(has_entry.status());
  return has_entry;
}

absl::StatusOr<bool> StoreCache::HasEntryOf(uid_t user, const Digest& artifact) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> keys, index_->KeysOf(artifact));
  const auto is_pending = [&](const Digest& key) { return pending_.HasLabelOf(user, key); };
  if (std::any_of(keys.begin(), keys.end(), is_pending)) return true;
  return index_->HasLabelOf(user, artifact);
}

absl::StatusOr<std::vector<Entry>> StoreCache::List(const ListFilter& filter) {
  FlushIfPossible();
  absl::StatusOr<std::vector<Entry>> entries = index_->List(filter);
  if (!entries.ok()) return Wrap(entries.status());
  return entries;
}

absl::StatusOr<PurgeResult> StoreCache::Purge(const PurgeFilter& filter) {
  FlushIfPossible();
  std::optional<int64_t> unused_since;
  if (filter.not_used_for_ms.has_value()) {
    unused_since = env_.UnixMillis() - static_cast<int64_t>(*filter.not_used_for_ms);
  }
  absl::StatusOr<Dropped> dropped = index_->Purge(filter.name, filter.owner, unused_since);
  if (!dropped.ok()) return Wrap(dropped.status());
  RemoveFiles(dropped->artifacts);
  return PurgeResult{dropped->labels, dropped->bytes};
}

absl::StatusOr<v1::GetCacheStatsResponse> StoreCache::Stats() {
  FlushIfPossible();
  absl::StatusOr<Counters> counters = index_->ReadCounters();
  if (!counters.ok()) return Wrap(counters.status());
  const Counters unwritten = pending_.counters();
  const auto value = [&](Counter counter) {
    return (*counters)[static_cast<size_t>(counter)] + unwritten[static_cast<size_t>(counter)];
  };
  v1::GetCacheStatsResponse stats;
  stats.set_builds(value(Counter::kBuilds));
  stats.set_hits(value(Counter::kHits));
  stats.set_misses(value(Counter::kMisses));
  stats.set_joined(value(Counter::kJoined));
  stats.set_failures(value(Counter::kFailures));
  stats.set_evictions(value(Counter::kEvictions));
  stats.set_cancelled(value(Counter::kCancelled));
  const IndexTotals totals = index_->Totals();
  stats.set_entries(totals.labels);
  stats.set_bytes(totals.bytes);
  stats.set_limit_bytes(limit_bytes_);
  stats.set_store_directory(paths_.directory);
  return stats;
}

absl::StatusOr<std::vector<KnownFile>> StoreCache::LoadKnownFiles() {
  absl::StatusOr<std::vector<KnownFile>> files = index_->LoadKnownFiles();
  if (!files.ok()) return Wrap(files.status());
  return files;
}

absl::Status StoreCache::SaveKnownFiles(const std::vector<KnownFile>& files) {
  if (files.empty()) return absl::OkStatus();
  return Wrap(index_->SaveKnownFiles(files));
}

absl::Status StoreCache::Flush() {
  RemoveReturned();
  PendingChanges changes = pending_.Take();
  if (changes.empty()) return absl::OkStatus();
  const absl::Status status = index_->Apply(changes);
  if (!status.ok()) pending_.PutBack(changes);
  return Wrap(status);
}

void StoreCache::FlushIfPossible() {
  const absl::Status status = Flush();
  if (!status.ok()) Log(LogLevel::kWarning, "cache-flush-failed", {{"error", status.ToString()}});
}

void StoreCache::Pin(const Digest& artifact) {
  const MutexLock lock(files_mutex_);
  ++pins_[artifact];
}

void StoreCache::Unpin(const Digest& artifact) {
  const MutexLock lock(files_mutex_);
  const auto pin = pins_.find(artifact);
  if (--pin->second == 0) pins_.erase(pin);
}

void StoreCache::RemoveFiles(const std::vector<Digest>& artifacts) {
  for (const Digest& artifact : artifacts) {
    const MutexLock lock(files_mutex_);
    if (!loans_.contains(artifact)) RemoveFile(artifact);
  }
}

void StoreCache::RemoveFile(const Digest& artifact) {
  if (pins_.contains(artifact)) return;
  // An Insert() may have committed since the index said that nobody names it. In doubt the file stays: the next start
  // looks again.
  const absl::StatusOr<bool> named = index_->IsNamed(artifact);
  if (!named.ok() || *named) return;
  const absl::Status status = blobs_.Remove(artifact);
  if (!status.ok()) Log(LogLevel::kWarning, "cache-remove-failed", {{"error", status.ToString()}});
}

void StoreCache::Lend(const Digest& artifact, std::optional<uid_t> user) {
  if (lend_time_.count() == 0) return;
  const MutexLock lock(files_mutex_);
  Loan& loan = loans_[artifact];
  loan.until = env_.Now() + lend_time_;
  if (user) loan.users.insert(*user);
}

bool StoreCache::IsLentTo(uid_t user, const Digest& artifact) {
  const MutexLock lock(files_mutex_);
  const auto loan = loans_.find(artifact);
  return loan != loans_.end() && loan->second.users.contains(user);
}

std::vector<Digest> StoreCache::Returned(MonotonicTime now) {
  std::vector<Digest> returned;
  const MutexLock lock(files_mutex_);
  for (const auto& [artifact, loan] : loans_) {
    if (loan.until <= now) returned.push_back(artifact);
  }
  return returned;
}

// One at a time: every hit needs the lock for a moment.
void StoreCache::RemoveReturned() {
  const MonotonicTime now = env_.Now();
  for (const Digest& artifact : Returned(now)) {
    const MutexLock lock(files_mutex_);
    const auto loan = loans_.find(artifact);
    if (loan == loans_.end() || loan->second.until > now) continue;  // lent again meanwhile
    loans_.erase(loan);
    RemoveFile(artifact);
  }
}

absl::StatusOr<std::unique_ptr<Index>> OpenIndex(Env& env, const StorePaths& paths) {
  absl::StatusOr<std::unique_ptr<Index>> index = Index::Open(paths.index);
  if (!absl::IsDataLoss(index.status())) return index;
  Log(LogLevel::kWarning, "cache-index-damaged",
      {{"error", index.status().ToString()}, {"kept_as", StrCat(paths.index, ".damaged")}});
  KERNIX_RETURN_IF_ERROR(MoveIndexAside(env, paths));
  return Index::Open(paths.index);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cache>> Cache::Open(Env& env, CacheOptions options) {
  StorePaths paths(options.directory);
  KERNIX_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, ClaimStore(env, paths));
  absl::StatusOr<std::unique_ptr<Index>> index = OpenIndex(env, paths);
  if (!index.ok()) return StoreError(paths.directory, index.status());
  auto cache = std::make_unique<StoreCache>(env, options, std::move(paths), std::move(lock), *std::move(index));
  KERNIX_RETURN_IF_ERROR(cache->Start());
  return cache;
}

}  // namespace kernix::cache
