// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/cache/index.h"
#include "daemon/cache/index_schema.h"
#include "daemon/cache/store_folder.h"

namespace kernix::cache {
namespace {

Total TotalOf(const Entry& entry) { return entry.detail.origin().empty() ? Total::kBuilds : Total::kUpstreamHits; }

constexpr mode_t kIndexMode = 0600;

// Whether the index is gone although it has a copy. A power failure can leave it empty.
bool IsLost(Env& env, const StorePaths& paths) {
  if (!env.Stat(paths.index_copy, /*follow=*/false).ok()) return false;
  const absl::StatusOr<FileInfo> index = env.Stat(paths.index, /*follow=*/false);
  return index.ok() ? index->size == 0 : absl::IsNotFound(index.status());
}

// The copy stays: until there is another one, the index may be lost again.
absl::StatusOr<std::unique_ptr<Index>> OpenCopy(Env& env, const StorePaths& paths) {
  KERNIX_ASSIGN_OR_RETURN(const std::string copy, env.ReadFile(paths.index_copy));
  KERNIX_RETURN_IF_ERROR(env.WriteFileDurably(paths.index, copy, kIndexMode));
  return Index::Open(paths.index);
}

// The copy takes the place of an index that is lost or damaged.
absl::StatusOr<std::unique_ptr<Index>> OpenIndex(Env& env, const StorePaths& paths) {
  const bool lost = IsLost(env, paths);
  absl::StatusOr<std::unique_ptr<Index>> index = absl::DataLossError("the index is gone");
  if (!lost) index = Index::Open(paths.index);
  if (!absl::IsDataLoss(index.status())) return index;
  Log(LogLevel::kWarning, "cache_index_damaged",
      {{"error", index.status().ToString()}, {"kept_as", lost ? "" : StrCat(paths.index, ".damaged")}});
  KERNIX_RETURN_IF_ERROR(MoveIndexAside(env, paths));
  index = OpenCopy(env, paths);
  if (index.ok()) {
    Log(LogLevel::kWarning, "cache_index_copy_used", {{"path", paths.index}});
    return index;
  }
  KERNIX_RETURN_IF_ERROR(env.RemoveTree(paths.index));
  return Index::Open(paths.index);
}

struct MetricText {
  const char* name;
  const char* help;
};

constexpr MetricText kTotalTexts[] = {
    {"kernix_builds_total", "Built and committed artifacts."},
    {"kernix_cache_hits_total", "Loads served without a build."},
    {"kernix_cache_misses_total", "Loads that started or joined a build."},
    {"kernix_joined_loads_total", "Loads that waited for another load's build."},
    {"kernix_failed_builds_total", "Failed builds."},
    {"kernix_cache_evictions_total", "Entries dropped to make room."},
    {"kernix_cancelled_builds_total", "Builds cancelled because nobody waited for them any more."},
    {"kernix_upstream_hits_total", "Loads served by another node's build."},
};
static_assert(std::size(kTotalTexts) == kTotalCount);

}  // namespace

struct Cache::Parts {
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<OwnFiles> files;
  std::unique_ptr<Index> index;
  std::unique_ptr<BlobFolder> blobs;
  std::vector<Layer> layers;
};

absl::StatusOr<std::unique_ptr<Cache>> Cache::Open(Env& env, CacheOptions options) {
  const StorePaths paths(options.directory);
  Parts parts;
  KERNIX_ASSIGN_OR_RETURN(parts.lock, ClaimStore(env, paths, options.socket));
  absl::StatusOr<std::unique_ptr<Index>> index = OpenIndex(env, paths);
  if (!index.ok()) return StoreError(paths.directory, index.status());
  parts.index = *std::move(index);
  parts.blobs = std::make_unique<BlobFolder>(env, paths.blobs);
  parts.files = FilesOfStore(env, paths);
  std::erase_if(options.read_directories, [&](const std::string& directory) {
    const std::string scratch = JoinPath(paths.scratch, StrCat("scratch-index-", parts.layers.size()));
    absl::StatusOr<Layer> layer = OpenLayer(env, directory, scratch);
    if (!layer.ok()) {
      Log(LogLevel::kWarning, "store_left_out", {{"error", layer.status().message()}});
      return true;
    }
    parts.layers.push_back(*std::move(layer));
    return false;
  });
  std::unique_ptr<Cache> cache(new Cache(env, std::move(options), std::move(parts)));
  KERNIX_RETURN_IF_ERROR(cache->Wrap(cache->Start()));
  return cache;
}

Cache::Cache(Env& env, CacheOptions options, Parts parts)
    : env_(env),
      options_(std::move(options)),
      limit_bytes_(options_.limit_bytes),
      limit_bytes_per_user_(options_.limit_bytes_per_user),
      lock_(std::move(parts.lock)),
      files_(std::move(parts.files)),
      index_(std::move(parts.index)),
      blobs_(std::move(parts.blobs)),
      layers_(std::move(parts.layers)),
      copied_at_(env_.Now()),
      copied_changes_(env_.Stat(StorePaths(options_.directory).index_copy, /*follow=*/false).ok() ? 0 : -1) {}

Cache::~Cache() {
  FlushIfPossible();
  CopyIndexIfChanged();
}

absl::Status Cache::Start() {
  before_ = index_->totals();
  KERNIX_ASSIGN_OR_RETURN(const absl::flat_hash_set<Digest> named, index_->Artifacts());
  KERNIX_ASSIGN_OR_RETURN(const absl::flat_hash_set<Digest> kept, blobs_->RemoveAllBut(named));
  for (const Digest& artifact : named) {
    if (!kept.contains(artifact)) DropEntriesOf(artifact).IgnoreError();  // otherwise Find() does
  }
  EvictIfPossible(std::nullopt);
  return absl::OkStatus();
}

absl::Status Cache::Wrap(const absl::Status& status) const { return StoreError(options_.directory, status); }

std::string Cache::FirstLost() const {
  const bool is_read_only = access(options_.directory.c_str(), W_OK) != 0 && errno == EROFS;
  return is_read_only ? options_.directory : files_->FirstLost();
}

std::string Cache::steps_directory() const { return StorePaths(options_.directory).steps; }

std::vector<std::string> Cache::toolchain_directories() const {
  std::vector<std::string> directories = {StorePaths(options_.directory).toolchains};
  for (const std::string& read : options_.read_directories) directories.push_back(StorePaths(read).toolchains);
  return directories;
}

std::string Cache::scratch_directory() const { return StorePaths(options_.directory).scratch; }

// --- Lookups ---------------------------------------------------------------------------------------------------------

absl::StatusOr<std::optional<Entry>> Cache::Find(const Digest& key) {
  KERNIX_ASSIGN_OR_RETURN(std::optional<Entry> entry, Wrap(index_->Find(key)));
  for (size_t i = 0; !entry && i < layers_.size(); ++i) entry = layers_[i].index->Find(key).value_or(std::nullopt);
  if (!entry) return std::nullopt;
  Lend(entry->artifact, std::nullopt);  // first, so that a blob found sound stays
  KERNIX_ASSIGN_OR_RETURN(const bool sound, Wrap(IsSound(entry->artifact, entry->size)));
  if (sound) return entry;
  Log(LogLevel::kWarning, "cache_artifact_unusable", {{"path", BlobPath(entry->artifact)}, {"key", ShortKey(key)}});
  KERNIX_RETURN_IF_ERROR(RemoveEntry(key, entry->artifact));
  return std::nullopt;
}

absl::StatusOr<bool> Cache::IsSound(const Digest& artifact, uint64_t size) {
  absl::StatusOr<bool> sound = blobs_->IsSound(artifact, size);
  if (env_.Stat(blobs_->PathOf(artifact), /*follow=*/false).ok()) return sound;  // BlobPath() prefers it
  for (size_t i = 0; sound.ok() && !*sound && i < layers_.size(); ++i)
    sound = layers_[i].blobs->IsSound(artifact, size);
  return sound;
}

std::string Cache::BlobPath(const Digest& digest) const {
  std::string own = blobs_->PathOf(digest);
  if (layers_.empty() || env_.Stat(own, /*follow=*/false).ok()) return own;
  for (const Layer& layer : layers_) {
    if (std::string path = layer.blobs->PathOf(digest); env_.Stat(path, /*follow=*/false).ok()) return path;
  }
  return own;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> Cache::OpenBlob(const Digest& digest) {
  absl::StatusOr<std::unique_ptr<ReadableFile>> blob = blobs_->Open(digest);
  for (size_t i = 0; absl::IsNotFound(blob.status()) && i < layers_.size(); ++i) blob = layers_[i].blobs->Open(digest);
  if (blob.ok() || absl::IsNotFound(blob.status())) return blob;
  return Wrap(blob.status());
}

absl::StatusOr<bool> Cache::Owns(UserId user, const Digest& artifact) {
  if (IsLentTo(user, artifact)) return true;
  return Wrap(index_->HasTagOf(user, artifact));
}

absl::StatusOr<std::vector<ListedEntry>> Cache::List(const TagFilter& filter) {
  FlushIfPossible();
  return Wrap(index_->List(filter));
}

absl::StatusOr<ListWeight> Cache::Weigh(const TagFilter& filter) {
  FlushIfPossible();
  return Wrap(index_->Weigh(filter));
}

absl::StatusOr<std::map<UserId, Held>> Cache::Holders() {
  FlushIfPossible();
  return Wrap(index_->Holders());
}

absl::StatusOr<std::vector<BuiltFrom>> Cache::Recent(const Tag& tag, size_t limit) {
  FlushIfPossible();
  return Wrap(index_->Recent(tag, limit));
}

absl::StatusOr<std::optional<v1::BuildTrace>> Cache::TraceOf(const Digest& key) {
  KERNIX_ASSIGN_OR_RETURN(const std::string bytes, Wrap(index_->TraceOf(key)));
  if (bytes.empty()) return std::nullopt;
  v1::BuildTrace trace;
  if (!trace.ParseFromString(bytes)) return Wrap(absl::DataLossError("index: the trace of a build cannot be read"));
  return trace;
}

// --- Changes ---------------------------------------------------------------------------------------------------------

absl::Status Cache::Insert(Entry entry, const Tag& tag, std::string_view artifact, const MakeTrace& make_trace) {
  if (entry.size == 0) {
    entry.artifact = DigestOf(artifact);
    entry.size = artifact.size();
  }
  entry.created_unix_ms = env_.UnixMillis();
  Guard(entry.artifact);
  absl::Status status = blobs_->Put(entry.artifact, artifact);
  if (status.ok() && make_trace) {
    const v1::BuildTrace trace = make_trace();
    entry.detail.set_build_ms(trace.total_us() / 1000);
    entry.trace = trace.SerializeAsString();
  }
  if (status.ok()) status = Commit(entry, tag);
  if (status.ok()) Lend(entry.artifact, std::nullopt);
  Unguard(entry.artifact);
  if (!status.ok()) RemoveBlobs({entry.artifact});
  return Wrap(status);
}

absl::Status Cache::Commit(const Entry& entry, const Tag& tag) {
  KERNIX_ASSIGN_OR_RETURN(const Dropped replaced, index_->Put(entry, tag));
  NoteChanges({entry.key});
  Count(TotalOf(entry));
  RemoveBlobs(replaced.artifacts);
  EvictIfPossible(entry.key);
  return absl::OkStatus();
}

std::atomic<uint64_t>& Cache::ChangesOf(const Digest& key) {
  return changes_[(size_t{key.bytes[0]} << 8 | key.bytes[1]) % changes_.size()];
}

void Cache::NoteChanges(const std::vector<Digest>& keys) {
  for (const Digest& key : keys) ++ChangesOf(key);
}

void Cache::EvictIfPossible(const std::optional<Digest>& keep) {
  const absl::StatusOr<Dropped> dropped = index_->Evict({limit_bytes_, limit_bytes_per_user_}, keep, env_.UnixMillis());
  if (!dropped.ok()) return Log(LogLevel::kWarning, "cache_evict_failed", {{"error", dropped.status().ToString()}});
  NoteChanges(dropped->keys);
  Count(Total::kEvictions, dropped->keys.size());
  RemoveBlobs(dropped->artifacts);
}

void Cache::SetLimits(const Limits& limits) {
  limit_bytes_ = limits.bytes;
  limit_bytes_per_user_ = limits.bytes_per_user;
  EvictIfPossible(std::nullopt);
}

absl::Status Cache::RemoveEntry(const Digest& key, const std::optional<Digest>& artifact) {
  KERNIX_ASSIGN_OR_RETURN(const Dropped dropped, Wrap(index_->Remove(key, artifact)));
  NoteChanges(dropped.keys);
  RemoveBlobs(dropped.artifacts);
  return absl::OkStatus();
}

absl::Status Cache::DropEntriesOf(const Digest& artifact) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> keys, index_->KeysOf(artifact));
  for (const Digest& key : keys) KERNIX_RETURN_IF_ERROR(RemoveEntry(key, artifact));
  return absl::OkStatus();
}

absl::StatusOr<Pinned> Cache::SetPinned(const TagFilter& filter, bool pinned) {
  FlushIfPossible();
  const uint64_t of_store = limit_bytes();
  const uint64_t of_user = limit_bytes_per_user() > 0 ? limit_bytes_per_user() : of_store;
  const PinLimits limits{.bytes = of_store / 2, .bytes_per_user = std::min(of_store / 8, of_user / 2)};
  absl::StatusOr<Pinned> result = index_->SetPinned(filter, pinned, limits);
  if (!absl::IsOutOfRange(result.status())) return Wrap(std::move(result));
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat(result.status().message(), ": unpin others first, with `kernixctl cache unpin`"));
}

absl::StatusOr<Dropped> Cache::Purge(const TagFilter& filter) {
  FlushIfPossible();
  absl::StatusOr<Dropped> purged = index_->Purge(filter);
  if (absl::IsResourceExhausted(purged.status())) {
    // On a full disk, the copy of the index makes room for the index's own changes. There will be another one.
    if (env_.RemoveFile(StorePaths(options_.directory).index_copy).ok()) copied_changes_ = -1;
    purged = index_->Purge(filter);
  }
  if (absl::IsResourceExhausted(purged.status())) {
    return MakeError(
        v1::ErrorDetail::RESOURCE,
        StrCat("the disk of the store ", options_.directory, " has no room to note what is purged (",
               purged.status().message(), "): run `kernixctl shutdown`, which makes some, and purge again"));
  }
  KERNIX_ASSIGN_OR_RETURN(Dropped dropped, Wrap(std::move(purged)));
  NoteChanges(dropped.keys);
  RemoveBlobs(dropped.artifacts);
  return dropped;
}

// --- The journal -----------------------------------------------------------------------------------------------------

void Cache::Touch(const Digest& key, const Tag& tag) {
  index_->AddUse(key, tag, env_.UnixMillis());
  Count(Total::kHits);
}

void Cache::AddTag(const Digest& key, const Tag& tag) { index_->AddTag(key, tag); }

void Cache::Count(Total total, uint64_t n) { counted_[static_cast<size_t>(total)].Add(n); }

Totals Cache::CountedTotals() const {
  Totals totals = before_;
  for (size_t i = 0; i < kTotalCount; ++i) totals[i] += counted_[i].value();
  return totals;
}

v1::GetCacheStatsResponse Cache::Stats() {
  FlushIfPossible();
  const Totals totals = CountedTotals();
  const auto of = [&](Total total) { return totals[static_cast<size_t>(total)]; };
  const Holdings holdings = index_->holdings();
  v1::GetCacheStatsResponse stats;
  stats.set_builds(of(Total::kBuilds));
  stats.set_hits(of(Total::kHits));
  stats.set_misses(of(Total::kMisses));
  stats.set_joined(of(Total::kJoined));
  stats.set_failures(of(Total::kFailures));
  stats.set_evictions(of(Total::kEvictions));
  stats.set_cancelled(of(Total::kCancelled));
  stats.set_upstream_hits(of(Total::kUpstreamHits));
  stats.set_entries(holdings.tags);
  stats.set_bytes(holdings.bytes());
  stats.set_limit_bytes(limit_bytes());
  stats.set_limit_bytes_per_user(limit_bytes_per_user());
  stats.set_store_directory(directory());
  return stats;
}

void Cache::Register(MetricsRegistry& registry) {
  for (size_t i = 0; i < kTotalCount; ++i) {
    registry.AddCounter(kTotalTexts[i].name, kTotalTexts[i].help, counted_[i]);
  }
  registry.AddGauge("kernix_cache_tags", "Tags in the cache: one for each name and user of an entry.",
                    [this] { return static_cast<int64_t>(index_->holdings().tags); });
  registry.AddGauge("kernix_cache_bytes", "Size of all artifacts in the cache, and of its index.",
                    [this] { return static_cast<int64_t>(index_->holdings().bytes()); });
  registry.AddGauge("kernix_cache_limit_bytes", "Size limit of the cache.",
                    [this] { return static_cast<int64_t>(limit_bytes()); });
}

absl::StatusOr<std::vector<KnownFile>> Cache::LoadKnownFiles() { return Wrap(index_->LoadKnownFiles()); }

absl::Status Cache::SaveKnownFiles(const std::vector<KnownFile>& files) {
  if (files.empty()) return absl::OkStatus();
  return Wrap(index_->SaveKnownFiles(files));
}

absl::Status Cache::Flush() {
  RemoveReturned();
  KERNIX_RETURN_IF_ERROR(Wrap(index_->Flush(CountedTotals())));
  // Tags take room, too.
  if (index_->holdings().index_bytes > 0 || limit_bytes_per_user_ > 0) EvictIfPossible(std::nullopt);
  return absl::OkStatus();
}

void Cache::CopyIndexIfDue() {
  constexpr std::chrono::hours kInterval{1};
  if (env_.Now() < copied_at_ + kInterval) return;
  copied_at_ = env_.Now();
  CopyIndexIfChanged();
}

void Cache::CopyIndexIfChanged() {
  const StorePaths paths(options_.directory);
  const int64_t changes = index_->changes();
  if (changes == copied_changes_ || !FirstLost().empty()) return;
  const std::string temporary = StrCat(paths.index_copy, ".tmp");
  absl::Status status = env_.RemoveTree(temporary);
  if (status.ok()) status = CopyIndexFile(paths.index, temporary);
  if (status.ok()) status = env_.Rename(temporary, paths.index_copy);
  if (status.ok()) copied_changes_ = changes;
  if (status.ok()) return;
  env_.RemoveTree(temporary).IgnoreError();
  Log(LogLevel::kWarning, "index_not_copied", {{"error", status.ToString()}});
}

void Cache::FlushIfPossible() {
  const absl::Status status = Flush();
  if (!status.ok()) Log(LogLevel::kWarning, "cache_flush_failed", {{"error", status.ToString()}});
}

// --- Blobs that must stay --------------------------------------------------------------------------------------------

void Cache::Guard(const Digest& artifact) {
  const MutexLock lock(blobs_mutex_);
  ++guards_[artifact];
}

void Cache::Unguard(const Digest& artifact) {
  const MutexLock lock(blobs_mutex_);
  const auto guard = guards_.find(artifact);
  if (--guard->second == 0) guards_.erase(guard);
}

void Cache::RemoveBlobs(const std::vector<Digest>& artifacts) {
  for (const Digest& artifact : artifacts) {
    const MutexLock lock(blobs_mutex_);
    if (!loans_.contains(artifact)) RemoveBlob(artifact);
  }
}

void Cache::RemoveBlob(const Digest& artifact) {
  if (guards_.contains(artifact) || !FirstLost().empty()) return;
  // An Insert() may have committed after the journal said that no entry names the blob. In doubt, the blob stays: the
  // next start checks again.
  const absl::StatusOr<bool> named = index_->IsNamed(artifact);
  if (!named.ok() || *named) return;
  const absl::Status status = blobs_->Remove(artifact);
  if (!status.ok()) Log(LogLevel::kWarning, "cache_remove_failed", {{"error", status.ToString()}});
}

void Cache::Lend(const Digest& artifact, UserId user) { Lend(artifact, std::optional(user)); }

void Cache::Lend(const Digest& artifact, const std::optional<UserId>& user) {
  if (options_.lend_time.count() == 0) return;
  const MutexLock lock(blobs_mutex_);
  Loan& loan = loans_[artifact];
  loan.until = env_.Now() + options_.lend_time;
  if (user) loan.users.insert(*user);
}

bool Cache::LendAgain(const Digest& key, const Digest& artifact, uint64_t size, uint64_t changes, UserId user) {
  Lend(artifact, std::nullopt);  // first, so that a blob found sound stays
  if (changes != this->changes(key) || !IsSound(artifact, size).value_or(false)) return false;
  Lend(artifact, user);
  return true;
}

bool Cache::IsLentTo(UserId user, const Digest& artifact) {
  const MutexLock lock(blobs_mutex_);
  const auto loan = loans_.find(artifact);
  return loan != loans_.end() && loan->second.users.contains(user);
}

std::vector<Digest> Cache::Returned(MonotonicTime now) {
  std::vector<Digest> returned;
  const MutexLock lock(blobs_mutex_);
  for (const auto& [artifact, loan] : loans_) {
    if (loan.until <= now) returned.push_back(artifact);
  }
  return returned;
}

// One at a time, because every hit needs the lock for a moment.
void Cache::RemoveReturned() {
  const MonotonicTime now = env_.Now();
  for (const Digest& artifact : Returned(now)) {
    const MutexLock lock(blobs_mutex_);
    const auto loan = loans_.find(artifact);
    if (loan == loans_.end() || loan->second.until > now) continue;  // lent again meanwhile
    loans_.erase(loan);
    RemoveBlob(artifact);
  }
}

}  // namespace kernix::cache
