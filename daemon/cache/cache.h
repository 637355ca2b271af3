// SPDX-License-Identifier: Apache-2.0
//
// The artifact cache: an index of entries, with a journal of their uses, and a folder of blobs, perhaps above stores
// that are only read. The cache ties them together:
//
// Crash safety: a blob is on disk before the index names it. A blob that no entry names is garbage, and the next
// start removes it. An entry whose blob is missing or damaged is dropped when it is found.
//
// Lifetime: a blob is removed only if no entry names it, no Insert() is between storing it and committing its entry
// (the blob is then guarded), and no client has been told of it within the lend time (the blob is then lent).
//
// On disk:
//
//   <directory>/version                 the layout's number
//   <directory>/artifacts/abcd....so    content, by SHA-256; read-only once there
//   <directory>/private/                0700; its content is for the store's owner only
//     lock, owner                       held by the one process that uses the store, and the identity of that process
//     index.sqlite                      WAL. A process that can open its files can block every commit
//     index.sqlite.copy                 a recent state of it, for a start that finds it lost or damaged
//     steps/                            results of steps, see step_store.h
//     tmp/                              scratch folders; emptied at start
//
// Other users whom the folder's mode admits can open an artifact whose digest they know, but cannot list artifacts.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
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
#include "common/os/file_identity.h"
#include "daemon/cache/entry.h"
#include "daemon/cache/journal.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::cache {

struct CacheOptions {
  std::string directory;
  uint64_t limit_bytes = 10ull << 30;  // for the artifacts, and the index beyond a small one
  // How long an artifact's blob stays after Find() or Insert() has given it out, even if its entry is removed: time for
  // the client to open it. A blob that outlives its entry is removed by a later Flush() or at the next start.
  Duration lend_time{0};
  // Where the process that opens the store listens, so that others find it; empty: nowhere.
  std::string socket = {};
  // Stores that are only read: Find() looks there for what this one does not have. See store_folder.h.
  std::vector<std::string> read_directories = {};
  std::string stands_in_for = {};     // a store that was named and cannot be written; empty: none
  uint64_t limit_bytes_per_user = 0;  // see Limits
};

using MakeTrace = std::function<v1::BuildTrace()>;

class BlobFolder;
class Index;
struct Layer;

// Thread-safe. Only the daemon writes to the store.
class Cache {
 public:
  // Opens the store in a folder, which is created if absent (mode 0700; the folder's mode decides who can open
  // artifacts). RESOURCE errors, with the path: the folder cannot be created or written; another kernixd holds it
  // (status code kUnavailable); its layout belongs to another kernix; it contains another user's files under the names
  // above. Moves a damaged index aside (with a warning in the log) and takes its last copy, or starts a new one. Cleans
  // up after a crash, and enforces the limit if it can.
  static absl::StatusOr<std::unique_ptr<Cache>> Open(Env& env, CacheOptions options);

  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // The entry of `key`, or nullopt. The entry's artifact exists and is intact; an entry whose blob is missing or
  // damaged is dropped. A blob that cannot be read at the moment (no descriptor left, a failing disk) is an error, and
  // its entry stays. Does not count as a use.
  absl::StatusOr<std::optional<Entry>> Find(const Digest& key);

  // A number that grows whenever Find() may say something else of `key` than before. It also grows with the entries of
  // a few other keys, which share it.
  uint64_t changes(const Digest& key) { return ChangesOf(key); }

  // Notes a hit for the entry (last use, hits, and `tag` if it is new) and counts it. Cheap: written to disk later, at
  // the latest by Flush().
  void Touch(const Digest& key, const Tag& tag);

  // Notes only the tag, also deferred: for all who waited for one build, whose entry has the tag of only one of them.
  void AddTag(const Digest& key, const Tag& tag);

  // Notes that `user` has been given `artifact` and is about to open or fetch it. For the lend time, the user owns the
  // artifact (see Owns()) and its blob stays, even if the entry is removed. Must be called before the user is told.
  void Lend(const Digest& artifact, UserId user);

  // For the entry of `key`, which Find() has returned when changes() was `changes`: lends its artifact and returns
  // true, if Find() would return it again. Reads no entry. False also if the artifact cannot be read just now.
  bool LendAgain(const Digest& key, const Digest& artifact, uint64_t size, uint64_t changes, UserId user);

  // Whether `user` has an entry of `artifact`, including one that is not on disk yet, or was given the artifact just
  // now.
  absl::StatusOr<bool> Owns(UserId user, const Digest& artifact);

  // Stores `artifact` and commits `entry` under `tag`, filling in its time and, if its size is 0, artifact and size. If
  // there is a `make_trace`, calls it once the artifact is on the disk, and keeps its result with the entry. Replaces
  // an older entry of the same key, whose tags stay. Counts a build (or, if it has an origin, a hit of the upstream),
  // and evicts down to the limits, but never the new entry. Once this has returned OK, the entry survives kill -9 and
  // power loss.
  absl::Status Insert(Entry entry, const Tag& tag, std::string_view artifact, const MakeTrace& make_trace = nullptr);

  // Drops one entry. Its blob is removed if no other entry names it.
  absl::Status Remove(const Digest& key) { return RemoveEntry(key, std::nullopt); }

  // See BlobFolder.
  std::string BlobPath(const Digest& digest) const;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenBlob(const Digest& digest);

  // One element for each matching tag, most recently used first.
  absl::StatusOr<std::vector<ListedEntry>> List(const TagFilter& filter);

  // How much List() would return: it reads all of that into memory.
  absl::StatusOr<ListWeight> Weigh(const TagFilter& filter);

  // What each user holds.
  absl::StatusOr<std::map<UserId, Held>> Holders();

  // The entries that `tag` names, most recently used first, at most `limit`.
  absl::StatusOr<std::vector<BuiltFrom>> Recent(const Tag& tag, size_t limit);

  // Where the time of the build went that made the entry of `key`; nullopt if there is no such entry, or no trace of
  // it.
  absl::StatusOr<std::optional<v1::BuildTrace>> TraceOf(const Digest& key);

  // Pins the matching tags (see Index), or unpins them. At most half of the cache can be pinned, and by a user who is
  // no administrator an eighth, and half of the limit of one user. RESOURCE, and nothing changes: that would be more.
  absl::StatusOr<Pinned> SetPinned(const TagFilter& filter, bool pinned);

  // Checks a piece of the store; see the call VerifyCache.
  absl::StatusOr<v1::VerifyCacheResponse> Verify(const v1::VerifyCacheRequest& request);

  // Removes the matching tags. A key without tags is removed, and its artifact with the last key that names it.
  absl::StatusOr<Dropped> Purge(const TagFilter& filter);

  // Written to disk later, like Touch(). The cache itself counts kBuilds, kUpstreamHits, kHits and
  // kEvictions.
  void Count(Total total, uint64_t n = 1);
  v1::GetCacheStatsResponse Stats();

  // Registers this process's counters and the store's gauges. The registry must not be read after the cache is
  // destroyed.
  void Register(MetricsRegistry& registry);

  // Facts about files outside the store (the compilers'), found by earlier processes; and those found by this one.
  absl::StatusOr<std::vector<KnownFile>> LoadKnownFiles();
  absl::Status SaveKnownFiles(const std::vector<KnownFile>& files);

  // Writes pending uses and totals. Must be called from time to time, and at the end.
  absl::Status Flush();

  // Copies the index, for a start that finds it lost or damaged, if it has changed and the last copy is an hour old.
  // Must be called from time to time, by one thread; the end of the cache makes a copy, too. Logs errors.
  void CopyIndexIfDue();

  // The first of the store's files and folders that somebody has removed or exchanged, or the store if its file system
  // has become read-only; empty: none. After that, the store works no more, and the files at its path belong to others:
  // only a new Cache can make it anew.
  std::string FirstLost() const;
  // Their names.
  std::vector<std::string> Files() const { return files_->Names(); }

  const std::string& directory() const { return options_.directory; }
  // `read_directories` without those that could not be opened.
  const CacheOptions& options() const { return options_; }
  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t limit_bytes_per_user() const { return limit_bytes_per_user_; }
  // Evicts down to the new limits if it can; otherwise the next Insert() does.
  void SetLimits(const Limits& limits);
  // The folder of a StepStore.
  std::string steps_directory() const;
  // The folders of a RememberedToolchains.
  std::vector<std::string> toolchain_directories() const;
  // A folder for scratch files; emptied at start.
  std::string scratch_directory() const;

 private:
  struct Parts;

  Cache(Env& env, CacheOptions options, Parts parts);

  absl::Status Start();
  absl::Status Wrap(const absl::Status& status) const;
  template <typename T>
  absl::StatusOr<T> Wrap(absl::StatusOr<T> result) const {
    return result.ok() ? std::move(result) : Wrap(result.status());
  }
  // Reading and cleaning up must work on a full disk, too.
  void FlushIfPossible();
  void CopyIndexIfChanged();
  Totals CountedTotals() const;
  absl::StatusOr<bool> IsSound(const Digest& artifact, uint64_t size);
  absl::Status RemoveEntry(const Digest& key, const std::optional<Digest>& artifact);
  absl::Status DropEntriesOf(const Digest& artifact);
  absl::Status Commit(const Entry& entry, const Tag& tag);
  std::atomic<uint64_t>& ChangesOf(const Digest& key);
  void NoteChanges(const std::vector<Digest>& keys);
  // Logs what fails; the next insertion evicts again.
  void EvictIfPossible(const std::optional<Digest>& keep);

  void Guard(const Digest& artifact);
  void Unguard(const Digest& artifact);
  void RemoveBlobs(const std::vector<Digest>& artifacts);
  void RemoveBlob(const Digest& artifact) ABSL_EXCLUSIVE_LOCKS_REQUIRED(blobs_mutex_);

  // The parts of Verify(). Each adds the problems that it finds.
  absl::Status VerifyFiles(bool repair, v1::VerifyCacheResponse& response);
  absl::Status VerifyArtifact(const SizedArtifact& artifact, bool repair, v1::VerifyCacheResponse& response);
  absl::StatusOr<bool> IsUnnamed(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(blobs_mutex_);

  // Until then, the blob stays and these users may have it.
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
  std::atomic<uint64_t> limit_bytes_;
  std::atomic<uint64_t> limit_bytes_per_user_;
  std::array<std::atomic<uint64_t>, 4096> changes_{};
  const std::unique_ptr<FileLock> lock_;  // destroyed last
  const std::unique_ptr<OwnFiles> files_;
  const std::unique_ptr<Index> index_;
  const std::unique_ptr<BlobFolder> blobs_;
  const std::vector<Layer> layers_;  // which Find() asks for what this store lacks
  Totals before_{};                  // counted by earlier processes
  std::array<MetricCounter, kTotalCount> counted_;
  // Of the thread that copies the index: when it did so last, and Index::changes() then.
  MonotonicTime copied_at_;
  std::atomic<int64_t> copied_changes_;  // -1: there is no copy

  Mutex blobs_mutex_;  // held while a blob is removed, so that an earlier guard keeps the blob
  absl::flat_hash_map<Digest, int> guards_ ABSL_GUARDED_BY(blobs_mutex_);
  absl::flat_hash_map<Digest, Loan> loans_ ABSL_GUARDED_BY(blobs_mutex_);
};

}  // namespace kernix::cache
