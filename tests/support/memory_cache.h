// SPDX-License-Identifier: Apache-2.0
//
// The parts of a cache in memory, for tests of the rooms above.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "daemon/cache/blob_store.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/journal.h"

namespace kernix::cache {

class MemoryBlobs final : public BlobStore {
 public:
  std::string PathOf(const Digest&) const override { return ""; }
  absl::Status Put(const Digest& digest, std::string_view content, Durability durability) override;
  absl::StatusOr<bool> IsSound(const Digest& digest, uint64_t size) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const Digest& digest) override;
  absl::Status Remove(const Digest& digest) override;
  absl::Status RemoveAllBut(const absl::flat_hash_set<Digest>& keep) override;

 private:
  Mutex mutex_;
  absl::flat_hash_map<Digest, std::shared_ptr<const std::string>> blobs_ ABSL_GUARDED_BY(mutex_);
};

class MemoryIndex final : public ActionCache, public Journal {
 public:
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
  struct Record {
    Entry entry;
    std::set<Tag> tags;
    int64_t last_used_unix_ms = 0;
    uint64_t hits = 0;
  };
  using Records = absl::flat_hash_map<Digest, Record>;  // by key

  void NoteTag(const Digest& key, const Tag& tag) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::flat_hash_map<Digest, uint64_t> Sizes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Bytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const Digest& key, Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::map<UserId, uint64_t> Holders() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EvictOne(const Limits& limits, const std::optional<Digest>& keep, Dropped& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Digest> OldestOf(UserId user, const std::optional<Digest>& keep) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  Records records_ ABSL_GUARDED_BY(mutex_);
  Totals totals_ ABSL_GUARDED_BY(mutex_) = {};
  std::map<std::string, KnownFile> known_files_ ABSL_GUARDED_BY(mutex_);
};

// Makes a cache of these parts. `directory` is its nominal place, and has its scratch folder.
std::unique_ptr<Cache> MakeMemoryCache(Env& env, CacheOptions options);

}  // namespace kernix::cache
