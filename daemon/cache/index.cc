// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/cache/index_schema.h"
#include "daemon/cache/index_statements.h"

namespace kernix::cache {
namespace {

absl::Status CheckPins(const Pinned& pinned, uint64_t of_all, const PinLimits& limits) {
  if (pinned.bytes > pinned.most_bytes) {
    return absl::OutOfRangeError(
        StrCat("then ", pinned.bytes, " bytes would be pinned, of at most ", pinned.most_bytes));
  }
  if (of_all <= limits.bytes) return absl::OkStatus();
  return absl::OutOfRangeError(
      StrCat("then all users together would have pinned ", of_all, " bytes, of at most ", limits.bytes));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Index>> Index::Open(const std::string& path) {
  auto writer = std::make_unique<IndexWriter>();
  KERNIX_RETURN_IF_ERROR(writer->Open(path));
  auto reader = std::make_unique<IndexReader>();
  KERNIX_RETURN_IF_ERROR(reader->Open(path));
  auto searcher = std::make_unique<IndexReader>();
  KERNIX_RETURN_IF_ERROR(searcher->Open(path));
  auto lister = std::make_unique<IndexReader>();
  KERNIX_RETURN_IF_ERROR(lister->Open(path));
  KERNIX_ASSIGN_OR_RETURN(const Books books, ReadBooks(*writer));
  return std::unique_ptr<Index>(
      new Index(std::move(writer), std::move(reader), std::move(searcher), std::move(lister), books));
}

absl::StatusOr<Index::Books> Index::ReadBooks(IndexWriter& writer) {
  Books books;
  Database& database = writer.database();
  KERNIX_ASSIGN_OR_RETURN(books.holdings.tags, database.QueryInt("SELECT count(*) FROM tag"));
  KERNIX_ASSIGN_OR_RETURN(
      books.holdings.artifact_bytes,
      database.QueryInt("SELECT coalesce(sum(size), 0) FROM (SELECT DISTINCT artifact, size FROM entry)"));
  KERNIX_ASSIGN_OR_RETURN(books.totals, writer.ReadTotals());
  KERNIX_RETURN_IF_ERROR(Measure(writer, books));
  return books;
}

Index::Index(std::unique_ptr<IndexWriter> writer, std::unique_ptr<IndexReader> reader,
             std::unique_ptr<IndexReader> searcher, std::unique_ptr<IndexReader> lister, const Books& books)
    : writer_(std::move(writer)),
      books_(books),
      reader_(std::move(reader)),
      searcher_(std::move(searcher)),
      lister_(std::move(lister)) {}

Index::~Index() = default;

// --- Reads -----------------------------------------------------------------------------------------------------------

absl::StatusOr<std::optional<Entry>> Index::Find(const Digest& key) {
  const MutexLock lock(read_mutex_);
  return reader_->Find(key);
}

absl::StatusOr<std::vector<ListedEntry>> Index::List(const TagFilter& filter) {
  const MutexLock lock(list_mutex_);
  return lister_->List(filter);
}

absl::StatusOr<ListWeight> Index::Weigh(const TagFilter& filter) {
  const MutexLock lock(list_mutex_);
  return lister_->Weigh(filter);
}

absl::StatusOr<std::vector<v1::CacheShare>> Index::Shares(std::optional<UserId> owner) {
  const MutexLock lock(list_mutex_);
  return lister_->Shares(owner);
}

absl::StatusOr<std::vector<BuiltFrom>> Index::Recent(const Tag& tag, size_t limit) {
  const MutexLock lock(search_mutex_);
  return searcher_->Recent(tag, limit);
}

absl::StatusOr<std::string> Index::TraceOf(const Digest& key) {
  const MutexLock lock(search_mutex_);
  return searcher_->TraceOf(key);
}

absl::StatusOr<bool> Index::HasTagOf(UserId owner, const Digest& artifact) {
  const MutexLock lock(read_mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> keys, reader_->KeysOf(artifact));
  const auto is_pending = [&](const Digest& key) { return pending_.HasTagOf(owner, key); };
  if (std::any_of(keys.begin(), keys.end(), is_pending)) return true;
  return reader_->HasTagOf(owner, artifact);
}

absl::StatusOr<bool> Index::IsNamed(const Digest& artifact) {
  const MutexLock lock(read_mutex_);
  return reader_->IsNamed(artifact);
}

absl::StatusOr<std::vector<Digest>> Index::KeysOf(const Digest& artifact) {
  const MutexLock lock(search_mutex_);
  return searcher_->KeysOf(artifact);
}

absl::StatusOr<std::vector<SizedArtifact>> Index::ArtifactsAfter(const Digest& digest, size_t limit) {
  const MutexLock lock(search_mutex_);
  return searcher_->ArtifactsAfter(digest, limit);
}

absl::StatusOr<absl::flat_hash_set<Digest>> Index::Artifacts() {
  const MutexLock lock(read_mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> artifacts, reader_->Artifacts());
  return absl::flat_hash_set<Digest>(artifacts.begin(), artifacts.end());
}

Holdings Index::holdings() {
  const MutexLock lock(write_mutex_);
  return books_.holdings;
}

int64_t Index::changes() {
  const MutexLock lock(write_mutex_);
  return writer_->database().AllChanges();
}

absl::StatusOr<Totals> Index::LoadTotals() {
  const MutexLock lock(write_mutex_);
  return books_.totals;
}

// --- Changes ---------------------------------------------------------------------------------------------------------

absl::StatusOr<Dropped> Index::Put(const Entry& entry, const Tag& tag) {
  const MutexLock lock(write_mutex_);
  std::optional<DiskNotAwaited> not_awaited;
  if (DurabilityOf(entry) == Durability::kMayBeLost) not_awaited.emplace(writer_->database());
  Dropped replaced;
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  KERNIX_RETURN_IF_ERROR(Uncharge(entry.key, books));
  KERNIX_RETURN_IF_ERROR(DropRow(entry.key, replaced, books));
  KERNIX_RETURN_IF_ERROR(PutRow(entry, tag, books));
  KERNIX_RETURN_IF_ERROR(Charge(entry.key, books));
  KERNIX_RETURN_IF_ERROR(Count(TotalOf(entry), 1, books));
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  std::erase(replaced.artifacts, entry.artifact);
  return replaced;
}

absl::StatusOr<Dropped> Index::Remove(const Digest& key, const std::optional<Digest>& artifact) {
  const MutexLock lock(write_mutex_);
  Dropped dropped;
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  if (artifact.has_value()) {
    KERNIX_ASSIGN_OR_RETURN(const std::optional<RowLinks> links, writer_->Links(key));
    if (!links.has_value() || links->artifact != *artifact) return dropped;
  }
  KERNIX_RETURN_IF_ERROR(Drop(key, dropped, books));
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  return dropped;
}

absl::StatusOr<Dropped> Index::Purge(const TagFilter& filter) {
  const MutexLock lock(write_mutex_);
  Dropped dropped;
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> keys, writer_->Tagged(filter));
  for (const Digest& key : keys) KERNIX_RETURN_IF_ERROR(Uncharge(key, books));
  KERNIX_ASSIGN_OR_RETURN(dropped.tags, writer_->DropTags(filter));
  books.holdings.tags -= dropped.tags;
  for (const Digest& key : keys) KERNIX_RETURN_IF_ERROR(ChargeOrDrop(key, dropped, books));
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  return dropped;
}

absl::StatusOr<Pinned> Index::SetPinned(const TagFilter& filter, bool pinned, const PinLimits& limits) {
  const MutexLock lock(write_mutex_);
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  Pinned now;
  KERNIX_ASSIGN_OR_RETURN(now.tags, writer_->SetPinned(filter, pinned));
  KERNIX_ASSIGN_OR_RETURN(const auto of_users, writer_->Pinned());
  uint64_t of_all = 0;
  for (const auto& [user, bytes] : of_users) {
    of_all += bytes;
    if (filter.owner.value_or(user) == user) now.bytes += bytes;
  }
  now.most_bytes = filter.owner ? limits.bytes_per_user : limits.bytes;
  if (pinned) KERNIX_RETURN_IF_ERROR(CheckPins(now, of_all, limits));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  return now;
}

bool Index::Books::Exceed(const Limits& limits) const {
  return Exceed(limits, 0) ||
         std::any_of(of_users->begin(), of_users->end(), [&](const auto& user) { return Exceed(limits, user.second); });
}

absl::Status Index::CountHolders() {
  if (books_.of_users.has_value()) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(books_.of_users, writer_->Holders());
  return absl::OkStatus();
}

absl::StatusOr<Dropped> Index::Evict(const Limits& limits, const std::optional<Digest>& keep) {
  const MutexLock lock(write_mutex_);
  if (!books_.Exceed(limits, 0) && limits.bytes_per_user == 0) return Dropped{};
  KERNIX_RETURN_IF_ERROR(CountHolders());
  if (!books_.Exceed(limits)) return Dropped{};
  const std::shared_ptr<const PendingUses> uses = pending_.Take();  // they decide what was used last
  absl::StatusOr<Dropped> dropped = EvictTo(limits, keep, *uses);
  dropped.ok() ? pending_.Written() : pending_.PutBack();
  return dropped;
}

absl::StatusOr<Dropped> Index::EvictTo(const Limits& limits, const std::optional<Digest>& keep,
                                       const PendingUses& uses) {
  Dropped dropped;
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  KERNIX_RETURN_IF_ERROR(Apply(uses, books));
  KERNIX_RETURN_IF_ERROR(Measure(*writer_, books));
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const std::optional<Victim> victim, FindVictim(limits, keep, books));
    if (!victim.has_value()) break;
    KERNIX_RETURN_IF_ERROR(Take(*victim, dropped, books));
    KERNIX_RETURN_IF_ERROR(Measure(*writer_, books));
  }
  KERNIX_RETURN_IF_ERROR(Count(Total::kEvictions, dropped.keys.size(), books));
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  return dropped;
}

// A user who holds only `keep` is passed over.
absl::StatusOr<std::optional<Index::Victim>> Index::FindVictim(const Limits& limits, const std::optional<Digest>& keep,
                                                               const Books& books) {
  std::vector<std::pair<uint64_t, UserId>> holders;
  for (const auto& [user, bytes] : *books.of_users) {
    if (books.Exceed(limits, bytes)) holders.emplace_back(bytes, user);
  }
  std::sort(holders.rbegin(), holders.rend());
  for (const auto& [bytes, user] : holders) {
    KERNIX_ASSIGN_OR_RETURN(const std::optional<Digest> oldest, writer_->OldestOf(user, keep));
    if (oldest.has_value()) return Victim{user, *oldest};
  }
  return std::nullopt;
}

absl::StatusOr<uint64_t> Index::HeldBy(UserId user) {
  const MutexLock lock(write_mutex_);
  KERNIX_RETURN_IF_ERROR(CountHolders());
  const auto held = books_.of_users->find(user);
  return held == books_.of_users->end() ? 0 : held->second;
}

// --- The journal -----------------------------------------------------------------------------------------------------

void Index::AddUse(const Digest& key, const Tag& tag, int64_t now_unix_ms) { pending_.AddUse(key, tag, now_unix_ms); }

void Index::AddTag(const Digest& key, const Tag& tag) { pending_.AddTag(key, tag); }

absl::Status Index::Flush(const Totals& totals) {
  const MutexLock lock(write_mutex_);
  const std::shared_ptr<const PendingUses> uses = pending_.Take();
  const absl::Status status = Write(*uses, totals);
  status.ok() ? pending_.Written() : pending_.PutBack();
  return status;
}

absl::Status Index::Write(const PendingUses& uses, const Totals& totals) {
  Totals new_counts;
  for (size_t i = 0; i < kTotalCount; ++i) new_counts[i] = totals[i] - std::min(totals[i], books_.totals[i]);
  if (uses.empty() && new_counts == Totals{}) return absl::OkStatus();
  const DiskNotAwaited not_awaited(writer_->database());  // each miss reads tags, and so writes them first
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_->database()));
  KERNIX_RETURN_IF_ERROR(Apply(uses, books));
  for (size_t i = 0; i < kTotalCount; ++i) {
    KERNIX_RETURN_IF_ERROR(Count(static_cast<Total>(i), new_counts[i], books));
  }
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  return absl::OkStatus();
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

absl::Status Index::Commit(Transaction& transaction, Books& books) {
  KERNIX_RETURN_IF_ERROR(Measure(*writer_, books));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  books_ = books;
  return absl::OkStatus();
}

// --- Within a transaction --------------------------------------------------------------------------------------------

// Pages that are partly empty count in full; free ones do not, since the next rows take them.
absl::Status Index::Measure(IndexWriter& writer, Books& books) {
  constexpr uint64_t kSmallIndex = 1 << 20;
  KERNIX_ASSIGN_OR_RETURN(const uint64_t used, writer.UsedBytes());
  books.holdings.index_bytes = used - std::min(used, kSmallIndex);
  return absl::OkStatus();
}

absl::Status Index::PutRow(const Entry& entry, const Tag& tag, Books& books) {
  KERNIX_ASSIGN_OR_RETURN(const bool shares_artifact, writer_->IsNamed(entry.artifact));
  KERNIX_RETURN_IF_ERROR(writer_->Put(entry));
  KERNIX_ASSIGN_OR_RETURN(const bool new_tag, writer_->PutTag(entry.key, tag));
  if (new_tag) books.holdings.tags += 1;
  if (!shares_artifact) books.holdings.artifact_bytes += entry.size;
  return absl::OkStatus();
}

absl::Status Index::Apply(const PendingUses& uses, Books& books) {
  for (const auto& [key, use] : uses) {
    KERNIX_RETURN_IF_ERROR(Uncharge(key, books));
    KERNIX_ASSIGN_OR_RETURN(const uint64_t new_tags, writer_->PutUse(key, use));
    KERNIX_RETURN_IF_ERROR(Charge(key, books));
    books.holdings.tags += new_tags;
  }
  return absl::OkStatus();
}

absl::Status Index::Count(Total total, uint64_t n, Books& books) {
  if (n == 0) return absl::OkStatus();
  books.totals[static_cast<size_t>(total)] += n;
  return writer_->Count(total, n);
}

absl::Status Index::Drop(const Digest& key, Dropped& dropped, Books& books) {
  KERNIX_RETURN_IF_ERROR(Uncharge(key, books));
  KERNIX_ASSIGN_OR_RETURN(const uint64_t tags, writer_->DropTagsOf(key));
  books.holdings.tags -= tags;
  dropped.tags += tags;
  return DropRow(key, dropped, books);
}

absl::Status Index::Take(const Victim& victim, Dropped& dropped, Books& books) {
  KERNIX_RETURN_IF_ERROR(Uncharge(victim.key, books));
  KERNIX_ASSIGN_OR_RETURN(const uint64_t tags, writer_->DropTagsOf(victim.key, victim.user));
  books.holdings.tags -= tags;
  dropped.tags += tags;
  return ChargeOrDrop(victim.key, dropped, books);
}

absl::Status Index::Uncharge(const Digest& key, Books& books) {
  if (!books.of_users.has_value()) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(const auto holders, writer_->HoldersOf(key));
  for (const auto& [user, bytes] : holders) (*books.of_users)[user] -= bytes;
  return absl::OkStatus();
}

absl::Status Index::Charge(const Digest& key, Books& books) {
  if (!books.of_users.has_value()) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(const auto holders, writer_->HoldersOf(key));
  for (const auto& [user, bytes] : holders) (*books.of_users)[user] += bytes;
  return absl::OkStatus();
}

absl::Status Index::ChargeOrDrop(const Digest& key, Dropped& dropped, Books& books) {
  KERNIX_ASSIGN_OR_RETURN(const bool is_tagged, writer_->IsTagged(key));
  return is_tagged ? Charge(key, books) : DropRow(key, dropped, books);
}

absl::Status Index::DropRow(const Digest& key, Dropped& dropped, Books& books) {
  KERNIX_ASSIGN_OR_RETURN(const std::optional<RowLinks> links, writer_->Links(key));
  if (!links.has_value()) return absl::OkStatus();
  KERNIX_RETURN_IF_ERROR(writer_->Drop(key, links->header_set));
  dropped.keys.push_back(key);
  KERNIX_ASSIGN_OR_RETURN(const bool still_named, writer_->IsNamed(links->artifact));
  if (still_named) return absl::OkStatus();
  books.holdings.artifact_bytes -= links->size;
  dropped.bytes += links->size;
  dropped.artifacts.push_back(links->artifact);
  return absl::OkStatus();
}

}  // namespace kernix::cache
