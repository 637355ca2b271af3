// SPDX-License-Identifier: Apache-2.0
#include "tests/support/memory_cache.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::cache {
namespace {

class MemoryFile final : public ReadableFile {
 public:
  explicit MemoryFile(std::shared_ptr<const std::string> content) : content_(std::move(content)) {}

  absl::StatusOr<FileInfo> Stat() override {
    return FileInfo{.type = FileType::kRegular, .size = content_->size(), .mode = 0444};
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
    if (offset >= content_->size()) return size_t{0};
    return content_->copy(buffer.data(), buffer.size(), offset);
  }

 private:
  const std::shared_ptr<const std::string> content_;
};

bool Matches(const TagFilter& filter, const Tag& tag, int64_t last_used_unix_ms) {
  return (!filter.name || tag.name == *filter.name) && (!filter.owner || tag.owner == *filter.owner) &&
         (!filter.unused_since_unix_ms || last_used_unix_ms < *filter.unused_since_unix_ms);
}

}  // namespace

// --- MemoryBlobs -----------------------------------------------------------------------------------------------------

absl::Status MemoryBlobs::Put(const Digest& digest, std::string_view content, Durability) {
  const MutexLock lock(mutex_);
  blobs_[digest] = std::make_shared<const std::string>(content);
  return absl::OkStatus();
}

absl::StatusOr<bool> MemoryBlobs::IsSound(const Digest& digest, uint64_t size) {
  const MutexLock lock(mutex_);
  const auto blob = blobs_.find(digest);
  return blob != blobs_.end() && blob->second->size() == size && DigestOf(*blob->second) == digest;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryBlobs::Open(const Digest& digest) {
  const MutexLock lock(mutex_);
  const auto blob = blobs_.find(digest);
  if (blob == blobs_.end()) return absl::NotFoundError(StrCat("no blob ", digest.Hex()));
  if (DigestOf(*blob->second) != digest) return absl::DataLossError(StrCat(digest.Hex(), " has other content"));
  return std::make_unique<MemoryFile>(blob->second);
}

absl::Status MemoryBlobs::Remove(const Digest& digest) {
  const MutexLock lock(mutex_);
  blobs_.erase(digest);
  return absl::OkStatus();
}

absl::Status MemoryBlobs::RemoveAllBut(const absl::flat_hash_set<Digest>& keep) {
  const MutexLock lock(mutex_);
  absl::erase_if(blobs_, [&](const auto& blob) { return !keep.contains(blob.first); });
  return absl::OkStatus();
}

// --- MemoryIndex: the action cache -----------------------------------------------------------------------------------

absl::StatusOr<std::optional<Entry>> MemoryIndex::Find(const Digest& key) {
  const MutexLock lock(mutex_);
  const auto record = records_.find(key);
  if (record == records_.end()) return std::nullopt;
  Entry entry = record->second.entry;
  entry.inputs.clear();
  entry.trace.clear();
  return entry;
}

absl::StatusOr<Dropped> MemoryIndex::Put(const Entry& entry, const Tag& tag) {
  const MutexLock lock(mutex_);
  Dropped replaced;
  std::set<Tag> tags;
  if (const auto older = records_.find(entry.key); older != records_.end()) tags = older->second.tags;
  Drop(entry.key, replaced);
  records_[entry.key] = {entry, std::move(tags), entry.created_unix_ms};
  NoteTag(entry.key, tag);
  ++totals_[static_cast<size_t>(TotalOf(entry))];
  std::erase(replaced.artifacts, entry.artifact);
  return replaced;
}

absl::StatusOr<Dropped> MemoryIndex::Remove(const Digest& key, const std::optional<Digest>& artifact) {
  const MutexLock lock(mutex_);
  Dropped dropped;
  const auto record = records_.find(key);
  if (record == records_.end() || (artifact && record->second.entry.artifact != *artifact)) return dropped;
  dropped.tags = record->second.tags.size();
  Drop(key, dropped);
  return dropped;
}

void MemoryIndex::Drop(const Digest& key, Dropped& dropped) {
  const auto record = records_.find(key);
  if (record == records_.end()) return;
  const Entry entry = record->second.entry;
  records_.erase(record);
  dropped.keys.push_back(key);
  if (Sizes().contains(entry.artifact)) return;
  dropped.bytes += entry.size;
  dropped.artifacts.push_back(entry.artifact);
}

// --- MemoryIndex: the journal ----------------------------------------------------------------------------------------

void MemoryIndex::AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms) {
  const MutexLock lock(mutex_);
  const auto record = records_.find(key);
  if (record == records_.end()) return;
  record->second.last_used_unix_ms = std::max(record->second.last_used_unix_ms, now_unix_ms);
  ++record->second.hits;
  NoteTag(key, tag);
}

void MemoryIndex::AddTag(const Digest& key, const Tag& tag) {
  const MutexLock lock(mutex_);
  NoteTag(key, tag);
}

void MemoryIndex::NoteTag(const Digest& key, const Tag& tag) {
  const auto record = records_.find(key);
  if (record == records_.end()) return;
  std::set<Tag>& tags = record->second.tags;
  const auto of_owner = [&](const Tag& other) { return other.owner == tag.owner; };
  if (std::count_if(tags.begin(), tags.end(), of_owner) < kMaxTagsPerOwner) tags.insert(tag);
}

absl::Status MemoryIndex::Flush(const Totals& totals) {
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < kTotalCount; ++i) totals_[i] = std::max(totals_[i], totals[i]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ListedEntry>> MemoryIndex::List(const TagFilter& filter) {
  const MutexLock lock(mutex_);
  std::vector<ListedEntry> listed;
  for (const auto& [key, record] : records_) {
    Entry entry = record.entry;
    entry.toolchain_headers.clear();
    entry.inputs.clear();
    entry.trace.clear();
    for (const Tag& tag : record.tags) {
      if (Matches(filter, tag, record.last_used_unix_ms)) {
        listed.push_back({entry, tag, record.last_used_unix_ms, record.hits});
      }
    }
  }
  const auto order = [](const ListedEntry& item) {
    return std::make_tuple(-item.last_used_unix_ms, -item.entry.created_unix_ms, item.entry.key, item.tag);
  };
  std::sort(listed.begin(), listed.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return listed;
}

absl::StatusOr<std::vector<BuiltFrom>> MemoryIndex::Recent(const Tag& tag, size_t limit) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<ListedEntry> listed, List({.name = tag.name, .owner = tag.owner}));
  const MutexLock lock(mutex_);
  std::vector<BuiltFrom> recent;
  for (const ListedEntry& item : listed) {
    const auto record = records_.find(item.entry.key);
    if (record == records_.end() || recent.size() == limit) continue;
    recent.push_back({item.entry.key, record->second.entry.inputs});
  }
  return recent;
}

absl::StatusOr<std::string> MemoryIndex::TraceOf(const Digest& key) {
  const MutexLock lock(mutex_);
  const auto record = records_.find(key);
  return record == records_.end() ? "" : record->second.entry.trace;
}

absl::StatusOr<bool> MemoryIndex::HasTagOf(UserId owner, const Digest& artifact) {
  const MutexLock lock(mutex_);
  return std::any_of(records_.begin(), records_.end(), [&](const auto& item) {
    const Record& record = item.second;
    return record.entry.artifact == artifact &&
           std::any_of(record.tags.begin(), record.tags.end(), [&](const Tag& l) { return l.owner == owner; });
  });
}

absl::StatusOr<Dropped> MemoryIndex::Purge(const TagFilter& filter) {
  const MutexLock lock(mutex_);
  Dropped dropped;
  std::vector<Digest> untagged;
  for (auto& [key, record] : records_) {
    const int64_t last_used = record.last_used_unix_ms;
    dropped.tags += std::erase_if(record.tags, [&](const Tag& l) { return Matches(filter, l, last_used); });
    if (record.tags.empty()) untagged.push_back(key);
  }
  for (const Digest& key : untagged) Drop(key, dropped);
  return dropped;
}

absl::StatusOr<Dropped> MemoryIndex::Evict(const Limits& limits, const std::optional<Digest>& keep) {
  const MutexLock lock(mutex_);
  Dropped dropped;
  while (EvictOne(limits, keep, dropped)) {
  }
  totals_[static_cast<size_t>(Total::kEvictions)] += dropped.keys.size();
  return dropped;
}

bool MemoryIndex::EvictOne(const Limits& limits, const std::optional<Digest>& keep, Dropped& dropped) {
  std::multimap<uint64_t, UserId> by_bytes;
  for (const auto& [user, bytes] : Holders()) by_bytes.emplace(bytes, user);
  for (auto holder = by_bytes.rbegin(); holder != by_bytes.rend(); ++holder) {
    const auto [bytes, user] = *holder;
    if (Bytes() <= limits.bytes && (limits.bytes_per_user == 0 || bytes <= limits.bytes_per_user)) return false;
    const std::optional<Digest> oldest = OldestOf(user, keep);
    if (!oldest) continue;
    std::set<Tag>& tags = records_[*oldest].tags;
    dropped.tags += std::erase_if(tags, [owner = user](const Tag& tag) { return tag.owner == owner; });
    if (tags.empty()) Drop(*oldest, dropped);
    return true;
  }
  return false;
}

std::map<UserId, uint64_t> MemoryIndex::Holders() const {
  std::map<UserId, uint64_t> holders;
  for (const auto& [key, record] : records_) {
    std::set<UserId> owners;
    for (const Tag& tag : record.tags) owners.insert(tag.owner);
    for (const UserId owner : owners) holders[owner] += record.entry.size;
  }
  return holders;
}

absl::StatusOr<uint64_t> MemoryIndex::HeldBy(UserId user) {
  const MutexLock lock(mutex_);
  return Holders()[user];
}

std::optional<Digest> MemoryIndex::OldestOf(UserId user, const std::optional<Digest>& keep) const {
  const auto age = [](const Record& record) {
    return std::make_tuple(record.last_used_unix_ms, record.entry.created_unix_ms);
  };
  const Record* oldest = nullptr;
  for (const auto& [key, record] : records_) {
    const bool is_theirs = std::any_of(record.tags.begin(), record.tags.end(),
                                       [owner = user](const Tag& tag) { return tag.owner == owner; });
    if (key != keep && is_theirs && (oldest == nullptr || age(record) < age(*oldest))) oldest = &record;
  }
  return oldest == nullptr ? std::nullopt : std::optional(oldest->entry.key);
}

absl::StatusOr<bool> MemoryIndex::IsNamed(const Digest& artifact) {
  const MutexLock lock(mutex_);
  return Sizes().contains(artifact);
}

absl::StatusOr<absl::flat_hash_set<Digest>> MemoryIndex::Artifacts() {
  const MutexLock lock(mutex_);
  absl::flat_hash_set<Digest> artifacts;
  for (const auto& [artifact, size] : Sizes()) artifacts.insert(artifact);
  return artifacts;
}

Holdings MemoryIndex::holdings() {
  const MutexLock lock(mutex_);
  Holdings holdings{.artifact_bytes = Bytes()};
  for (const auto& [key, record] : records_) holdings.tags += record.tags.size();
  return holdings;
}

absl::flat_hash_map<Digest, uint64_t> MemoryIndex::Sizes() const {
  absl::flat_hash_map<Digest, uint64_t> sizes;
  for (const auto& [key, record] : records_) sizes[record.entry.artifact] = record.entry.size;
  return sizes;
}

uint64_t MemoryIndex::Bytes() const {
  uint64_t bytes = 0;
  for (const auto& [artifact, size] : Sizes()) bytes += size;
  return bytes;
}

absl::StatusOr<Totals> MemoryIndex::LoadTotals() {
  const MutexLock lock(mutex_);
  return totals_;
}

absl::StatusOr<std::vector<KnownFile>> MemoryIndex::LoadKnownFiles() {
  const MutexLock lock(mutex_);
  std::vector<KnownFile> files;
  for (const auto& [path, file] : known_files_) files.push_back(file);
  return files;
}

absl::Status MemoryIndex::SaveKnownFiles(const std::vector<KnownFile>& files) {
  const MutexLock lock(mutex_);
  for (const KnownFile& file : files) known_files_[file.path] = file;
  return absl::OkStatus();
}

// ---------------------------------------------------------------------------------------------------------------------

std::unique_ptr<Cache> MakeMemoryCache(Env& env, CacheOptions options) {
  const auto index = std::make_shared<MemoryIndex>();
  return Cache::Make(env, std::move(options), {index, std::make_shared<MemoryBlobs>(), index, nullptr}).value();
}

}  // namespace kernix::cache
