// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/cache/index_schema.h"

namespace kernix::cache {
namespace {

// The condition of a TagFilter, with the parameters of BindFilter():
constexpr char kMatchingTags[] =
    "WHERE (?1 = 0 OR name = ?2) AND (?3 = 0 OR owner = ?4) AND (?6 = 0 OR pinned = 0) "
    "AND (?7 = '' OR substr(lower(hex(tag.key)), 1, length(?7)) = ?7) ";
constexpr char kLastUsed[] = "last_used_unix_ms < ?5";

Statement& BindFilter(Statement& statement, const TagFilter& filter) {
  return statement.Bind(filter.name.has_value(), filter.name.value_or(""), filter.owner.has_value(),
                        filter.owner.value_or(UserId{}),
                        filter.unused_since_unix_ms.value_or(std::numeric_limits<int64_t>::max()), filter.spares_pinned,
                        filter.key_prefix);
}

// What each user holds of the tags that `which` selects. A tag's name is in the table and in its index.
std::string SelectHolders(std::string_view which) {
  return StrCat("SELECT owner, sum(bytes), sum(tags) FROM (SELECT owner, count(*) AS tags, ",
                "size + length(detail) + coalesce(length(inputs), 0) + coalesce(length(trace), 0) + ",
                "sum(2 * length(CAST(name AS BLOB)) + 100) AS bytes ",
                "FROM tag JOIN entry ON entry.key = tag.key LEFT JOIN build_inputs ON build_inputs.key = tag.key ",
                "LEFT JOIN build_trace ON build_trace.key = tag.key ", which,
                " GROUP BY owner, tag.key) GROUP BY owner");
}

absl::StatusOr<std::map<UserId, Held>> ReadHolders(Statement& select) {
  std::map<UserId, Held> holders;
  KERNIX_RETURN_IF_ERROR(select.ForEachRow([&](const Statement& row) {
    holders[static_cast<UserId>(row.Int(0))] = {.bytes = static_cast<uint64_t>(row.Int(1)),
                                                .tags = static_cast<uint64_t>(row.Int(2))};
  }));
  return holders;
}

absl::StatusOr<std::vector<Digest>> ReadDigests(Statement& select) {
  std::vector<Digest> digests;
  KERNIX_RETURN_IF_ERROR(select.ForEachRow([&](const Statement& row) -> absl::Status {
    KERNIX_ASSIGN_OR_RETURN(digests.emplace_back(), Digest::FromRaw(row.Bytes(0)));
    return absl::OkStatus();
  }));
  return digests;
}

absl::StatusOr<std::vector<Digest>> ReadKeysOf(Database& database, const Digest& artifact) {
  return ReadDigests(database.Prepared("SELECT key FROM entry WHERE artifact = ?").Bind(artifact));
}

absl::StatusOr<bool> Names(Database& database, const Digest& artifact) {
  return database.Prepared("SELECT 1 FROM entry WHERE artifact = ? LIMIT 1").Bind(artifact).HasRow();
}

// The columns of an entry's row that tell what it shares with other rows.
struct RowLinks {
  Digest artifact;
  uint64_t size = 0;
  int64_t header_set = 0;
};

absl::StatusOr<std::optional<RowLinks>> LinksOf(Database& database, const Digest& key) {
  std::optional<RowLinks> links;
  Statement& select = database.Prepared("SELECT artifact, size, header_set FROM entry WHERE key = ?").Bind(key);
  KERNIX_RETURN_IF_ERROR(select.ForEachRow([&](const Statement& row) -> absl::Status {
    KERNIX_ASSIGN_OR_RETURN(const Digest artifact, Digest::FromRaw(row.Bytes(0)));
    links = {artifact, static_cast<uint64_t>(row.Int(1)), row.Int(2)};
    return absl::OkStatus();
  }));
  return links;
}

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
  std::unique_ptr<Index> index(new Index());
  KERNIX_RETURN_IF_ERROR(index->Start(path));
  return index;
}

absl::Status Index::Start(const std::string& path) {
  const MutexLock write_lock(write_mutex_);
  const MutexLock read_lock(read_mutex_);
  const MutexLock search_lock(search_mutex_);
  const MutexLock list_lock(list_mutex_);
  KERNIX_ASSIGN_OR_RETURN(database_, OpenIndexConnection(path));
  KERNIX_RETURN_IF_ERROR(PrepareIndex(database_));
  KERNIX_ASSIGN_OR_RETURN(reader_, OpenIndexConnection(path));
  KERNIX_ASSIGN_OR_RETURN(searcher_, OpenIndexConnection(path));
  KERNIX_ASSIGN_OR_RETURN(lister_, OpenIndexConnection(path));
  KERNIX_ASSIGN_OR_RETURN(books_.holdings.tags, database_.QueryInt("SELECT count(*) FROM tag"));
  KERNIX_ASSIGN_OR_RETURN(
      books_.holdings.artifact_bytes,
      database_.QueryInt("SELECT coalesce(sum(size), 0) FROM (SELECT DISTINCT artifact, size FROM entry)"));
  Totals totals{};
  KERNIX_RETURN_IF_ERROR(database_.Prepared("SELECT id, value FROM counter").ForEachRow([&](const Statement& row) {
    const auto id = static_cast<size_t>(row.Int(0));
    if (id < totals.size()) totals[id] = static_cast<uint64_t>(row.Int(1));
  }));
  written_totals_ = totals;
  return Measure(books_);
}

// --- Reads -----------------------------------------------------------------------------------------------------------

absl::StatusOr<std::optional<Entry>> Index::Find(const Digest& key) {
  const MutexLock lock(read_mutex_);
  const std::string sql = StrCat("SELECT ", kEntryColumns, ", headers FROM entry ",
                                 "JOIN header_set ON entry.header_set = header_set.id WHERE entry.key = ?");
  std::optional<Entry> entry;
  KERNIX_RETURN_IF_ERROR(reader_.Prepared(sql).Bind(key).ForEachRow([&](const Statement& row) -> absl::Status {
    KERNIX_ASSIGN_OR_RETURN(entry, DecodeRow(row));
    return DecodeHeaders(row.Bytes(kEntryColumnCount), *entry);
  }));
  return entry;
}

absl::StatusOr<std::vector<ListedEntry>> Index::List(const TagFilter& filter) {
  const MutexLock lock(list_mutex_);
  const std::string sql =
      StrCat("SELECT ", kEntryColumns, ", last_used_unix_ms, hits, tag.name, tag.owner, tag.pinned FROM entry ",
             "JOIN tag ON tag.key = entry.key ", kMatchingTags, "AND ", kLastUsed,
             " ORDER BY last_used_unix_ms DESC, created_unix_ms DESC, entry.key, tag.name, tag.owner");
  std::vector<ListedEntry> entries;
  KERNIX_RETURN_IF_ERROR(BindFilter(lister_.Prepared(sql), filter).ForEachRow([&](const Statement& row) {
    absl::StatusOr<Entry> entry = DecodeRow(row);
    if (!entry.ok()) {  // must not hide all others
      return Log(LogLevel::kWarning, "entry_not_listed", {{"error", entry.status().message()}});
    }
    ListedEntry& listed = entries.emplace_back();
    listed.entry = *std::move(entry);
    listed.last_used_unix_ms = row.Int(kEntryColumnCount);
    listed.hits = static_cast<uint64_t>(row.Int(kEntryColumnCount + 1));
    listed.tag = {std::string(row.Text(kEntryColumnCount + 2)), static_cast<UserId>(row.Int(kEntryColumnCount + 3))};
    listed.pinned = row.Int(kEntryColumnCount + 4) != 0;
  }));
  return entries;
}

// SQLite reads no detail to tell its length.
absl::StatusOr<ListWeight> Index::Weigh(const TagFilter& filter) {
  const MutexLock lock(list_mutex_);
  const std::string sql = StrCat("SELECT count(*), coalesce(sum(tag.pinned), 0), ",
                                 "coalesce(sum(length(detail) + length(CAST(tag.name AS BLOB)) + 500), 0) ",
                                 "FROM entry JOIN tag ON tag.key = entry.key ", kMatchingTags, "AND ", kLastUsed);
  ListWeight weight;
  KERNIX_RETURN_IF_ERROR(BindFilter(lister_.Prepared(sql), filter).ForEachRow([&](const Statement& row) {
    weight = {.entries = static_cast<uint64_t>(row.Int(0)),
              .pinned = static_cast<uint64_t>(row.Int(1)),
              .bytes = static_cast<uint64_t>(row.Int(2))};
  }));
  return weight;
}

absl::StatusOr<std::vector<BuiltFrom>> Index::Recent(const Tag& tag, size_t limit) {
  const MutexLock lock(search_mutex_);
  constexpr char kRecent[] =
      "SELECT entry.key, coalesce(inputs, x'') FROM tag JOIN entry ON entry.key = tag.key "
      "LEFT JOIN build_inputs ON build_inputs.key = entry.key WHERE tag.name = ? AND tag.owner = ? "
      "ORDER BY last_used_unix_ms DESC, created_unix_ms DESC, entry.key LIMIT ?";
  std::vector<BuiltFrom> recent;
  Statement& select = searcher_.Prepared(kRecent).Bind(tag.name, tag.owner, limit);
  KERNIX_RETURN_IF_ERROR(select.ForEachRow([&](const Statement& row) -> absl::Status {
    BuiltFrom& built = recent.emplace_back();
    KERNIX_ASSIGN_OR_RETURN(built.key, Digest::FromRaw(row.Bytes(0)));
    KERNIX_ASSIGN_OR_RETURN(built.inputs, DecodeInputs(row.Bytes(1)));
    return absl::OkStatus();
  }));
  return recent;
}

absl::StatusOr<std::string> Index::TraceOf(const Digest& key) {
  const MutexLock lock(search_mutex_);
  std::string trace;
  KERNIX_RETURN_IF_ERROR(
      searcher_.Prepared("SELECT trace FROM build_trace WHERE key = ?").Bind(key).ForEachRow([&](const Statement& row) {
        trace = row.Bytes(0);
      }));
  return trace;
}

absl::StatusOr<bool> Index::HasTagOf(UserId owner, const Digest& artifact) {
  const MutexLock lock(read_mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> keys, ReadKeysOf(reader_, artifact));
  const auto is_pending = [&](const Digest& key) { return pending_.HasTagOf(owner, key); };
  if (std::any_of(keys.begin(), keys.end(), is_pending)) return true;
  constexpr char kHasTag[] =
      "SELECT 1 FROM entry JOIN tag ON tag.key = entry.key WHERE entry.artifact = ? AND tag.owner = ? LIMIT 1";
  return reader_.Prepared(kHasTag).Bind(artifact, owner).HasRow();
}

absl::StatusOr<bool> Index::IsNamed(const Digest& artifact) {
  const MutexLock lock(read_mutex_);
  return Names(reader_, artifact);
}

absl::StatusOr<std::vector<Digest>> Index::KeysOf(const Digest& artifact) {
  const MutexLock lock(search_mutex_);
  return ReadKeysOf(searcher_, artifact);
}

absl::StatusOr<std::vector<SizedArtifact>> Index::ArtifactsAfter(const Digest& digest, size_t limit) {
  const MutexLock lock(search_mutex_);
  constexpr char kArtifactsAfter[] =
      "SELECT DISTINCT artifact, size FROM entry WHERE artifact > ? ORDER BY artifact LIMIT ?";
  std::vector<SizedArtifact> artifacts;
  Statement& select = searcher_.Prepared(kArtifactsAfter).Bind(digest, limit);
  KERNIX_RETURN_IF_ERROR(select.ForEachRow([&](const Statement& row) -> absl::Status {
    KERNIX_ASSIGN_OR_RETURN(const Digest artifact, Digest::FromRaw(row.Bytes(0)));
    artifacts.push_back({artifact, static_cast<uint64_t>(row.Int(1))});
    return absl::OkStatus();
  }));
  return artifacts;
}

absl::StatusOr<absl::flat_hash_set<Digest>> Index::Artifacts() {
  const MutexLock lock(read_mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> artifacts,
                          ReadDigests(reader_.Prepared("SELECT DISTINCT artifact FROM entry")));
  return absl::flat_hash_set<Digest>(artifacts.begin(), artifacts.end());
}

Holdings Index::holdings() {
  const MutexLock lock(write_mutex_);
  return books_.holdings;
}

int64_t Index::changes() {
  const MutexLock lock(write_mutex_);
  return database_.AllChanges();
}

Totals Index::totals() {
  const MutexLock lock(write_mutex_);
  return written_totals_;
}

absl::StatusOr<std::map<UserId, Held>> Index::Holders() {
  const MutexLock lock(write_mutex_);
  KERNIX_RETURN_IF_ERROR(CountHolders());
  return *books_.of_users;
}

// --- Changes ---------------------------------------------------------------------------------------------------------

absl::StatusOr<Dropped> Index::Put(const Entry& entry, const Tag& tag) {
  const MutexLock lock(write_mutex_);
  Dropped replaced;
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  KERNIX_RETURN_IF_ERROR(Uncharge(entry.key, books));
  KERNIX_RETURN_IF_ERROR(DropRow(entry.key, replaced, books));
  KERNIX_ASSIGN_OR_RETURN(const bool shares_artifact, Names(database_, entry.artifact));
  if (!shares_artifact) books.holdings.artifact_bytes += entry.size;
  KERNIX_RETURN_IF_ERROR(PutRow(entry));
  KERNIX_RETURN_IF_ERROR(PutTag(entry.key, tag, books));
  KERNIX_RETURN_IF_ERROR(Charge(entry.key, books));
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  std::erase(replaced.artifacts, entry.artifact);
  return replaced;
}

absl::StatusOr<Dropped> Index::Remove(const Digest& key, const std::optional<Digest>& artifact) {
  const MutexLock lock(write_mutex_);
  Dropped dropped;
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  if (artifact.has_value()) {
    KERNIX_ASSIGN_OR_RETURN(const std::optional<RowLinks> links, LinksOf(database_, key));
    if (!links.has_value() || links->artifact != *artifact) return dropped;
  }
  KERNIX_RETURN_IF_ERROR(Uncharge(key, books));
  KERNIX_RETURN_IF_ERROR(DropTags(key, std::nullopt, dropped, books));
  KERNIX_RETURN_IF_ERROR(DropRow(key, dropped, books));
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  return dropped;
}

absl::StatusOr<Dropped> Index::Purge(const TagFilter& filter) {
  const MutexLock lock(write_mutex_);
  Dropped dropped;
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  const std::string select =
      StrCat("SELECT DISTINCT tag.key FROM tag JOIN entry ON entry.key = tag.key ", kMatchingTags, "AND ", kLastUsed);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> keys, ReadDigests(BindFilter(database_.Prepared(select), filter)));
  for (const Digest& key : keys) KERNIX_RETURN_IF_ERROR(Uncharge(key, books));
  const std::string drop =
      StrCat("DELETE FROM tag ", kMatchingTags, "AND key IN (SELECT key FROM entry WHERE ", kLastUsed, ")");
  KERNIX_RETURN_IF_ERROR(BindFilter(database_.Prepared(drop), filter).Run());
  dropped.tags = database_.Changes();
  books.holdings.tags -= dropped.tags;
  for (const Digest& key : keys) KERNIX_RETURN_IF_ERROR(ChargeOrDrop(key, dropped, books));
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  return dropped;
}

absl::StatusOr<Pinned> Index::SetPinned(const TagFilter& filter, bool pinned, const PinLimits& limits) {
  const MutexLock lock(write_mutex_);
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  const std::string update = StrCat("UPDATE tag SET pinned = ", pinned ? 1 : 0, " ", kMatchingTags);
  KERNIX_RETURN_IF_ERROR(BindFilter(database_.Prepared(update), filter).Run());
  Pinned now{.tags = database_.Changes()};
  KERNIX_ASSIGN_OR_RETURN(const auto of_users, ReadHolders(database_.Prepared(SelectHolders("WHERE pinned"))));
  uint64_t of_all = 0;
  for (const auto& [user, held] : of_users) {
    of_all += held.bytes;
    if (filter.owner.value_or(user) == user) now.bytes += held.bytes;
  }
  now.most_bytes = filter.owner ? limits.bytes_per_user : limits.bytes;
  if (pinned) KERNIX_RETURN_IF_ERROR(CheckPins(now, of_all, limits));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  return now;
}

bool Index::Books::Exceed(const Limits& limits) const {
  return Exceed(limits, 0) || std::any_of(of_users->begin(), of_users->end(),
                                          [&](const auto& user) { return Exceed(limits, user.second.bytes); });
}

absl::Status Index::CountHolders() {
  if (books_.of_users.has_value()) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(books_.of_users, ReadHolders(database_.Prepared(SelectHolders(""))));
  return absl::OkStatus();
}

absl::StatusOr<Dropped> Index::Evict(const Limits& limits, const std::optional<Digest>& keep, int64_t now_unix_ms) {
  const MutexLock lock(write_mutex_);
  if (!books_.Exceed(limits, 0) && limits.bytes_per_user == 0) return Dropped{};
  KERNIX_RETURN_IF_ERROR(CountHolders());
  if (!books_.Exceed(limits)) return Dropped{};
  const std::shared_ptr<const PendingUses> uses = pending_.Take();  // they decide what was used last
  absl::StatusOr<Dropped> dropped = EvictTo(limits, keep, now_unix_ms, *uses);
  dropped.ok() ? pending_.Written() : pending_.PutBack();
  return dropped;
}

absl::StatusOr<Dropped> Index::EvictTo(const Limits& limits, const std::optional<Digest>& keep, int64_t now_unix_ms,
                                       const PendingUses& uses) {
  Dropped dropped;
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  KERNIX_RETURN_IF_ERROR(Apply(uses, books));
  KERNIX_RETURN_IF_ERROR(Measure(books));
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const std::optional<Victim> victim, FindVictim(limits, keep, now_unix_ms, books));
    if (!victim.has_value()) break;
    KERNIX_RETURN_IF_ERROR(Uncharge(victim->key, books));
    KERNIX_RETURN_IF_ERROR(DropTags(victim->key, victim->user, dropped, books));
    KERNIX_RETURN_IF_ERROR(ChargeOrDrop(victim->key, dropped, books));
    KERNIX_RETURN_IF_ERROR(Measure(books));
  }
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  return dropped;
}

// A user who holds only `keep` is passed over. What was used later than now, when the clock was ahead, goes first: its
// turn would never come.
absl::StatusOr<std::optional<Index::Victim>> Index::FindVictim(const Limits& limits, const std::optional<Digest>& keep,
                                                               int64_t now_unix_ms, const Books& books) {
  constexpr char kOldestOf[] =
      "SELECT key FROM entry WHERE key <> ?1 AND last_used_unix_ms > ?3 "
      "AND (SELECT max(pinned) FROM tag WHERE tag.key = entry.key AND owner = ?2) = 0 "
      "ORDER BY last_used_unix_ms, created_unix_ms LIMIT 1";
  constexpr int64_t kAnHour = 3'600'000;
  constexpr int64_t kEver = std::numeric_limits<int64_t>::min();
  std::vector<std::pair<uint64_t, UserId>> holders;
  for (const auto& [user, held] : *books.of_users) {
    if (books.Exceed(limits, held.bytes)) holders.emplace_back(held.bytes, user);
  }
  std::sort(holders.rbegin(), holders.rend());
  for (const auto& [bytes, user] : holders) {
    for (const int64_t since : {now_unix_ms + kAnHour, kEver}) {
      KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> oldest,
                              ReadDigests(database_.Prepared(kOldestOf).Bind(keep.value_or(Digest{}), user, since)));
      if (!oldest.empty()) return Victim{user, oldest.front()};
    }
  }
  return std::nullopt;
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

absl::Status Index::Write(const PendingUses& uses, Totals totals) {
  // Threads may come in another order than they have counted in.
  for (size_t i = 0; i < kTotalCount; ++i) totals[i] = std::max(totals[i], written_totals_[i]);
  if (uses.empty() && totals == written_totals_) return absl::OkStatus();
  const DiskNotAwaited not_awaited(database_);  // each miss reads tags, and so writes them first
  Books books = books_;
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  KERNIX_RETURN_IF_ERROR(Apply(uses, books));
  Statement& count = database_.Prepared("INSERT OR REPLACE INTO counter (id, value) VALUES (?, ?)");
  for (size_t i = 0; i < kTotalCount; ++i) KERNIX_RETURN_IF_ERROR(count.Bind(i, totals[i]).Run());
  KERNIX_RETURN_IF_ERROR(Commit(transaction, books));
  written_totals_ = totals;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<KnownFile>> Index::LoadKnownFiles() {
  const MutexLock lock(write_mutex_);
  constexpr int64_t kMost = 50'000;
  KERNIX_ASSIGN_OR_RETURN(const int64_t count, database_.QueryInt("SELECT count(*) FROM known_file"));
  if (count > kMost) KERNIX_RETURN_IF_ERROR(database_.Execute("DELETE FROM known_file"));
  KERNIX_RETURN_IF_ERROR(database_.Execute("DELETE FROM known_file WHERE length(CAST(digest AS BLOB)) <> 32"));
  std::vector<KnownFile> files;
  Statement& select =
      database_.Prepared("SELECT path, digest, size, mtime_ns, ctime_ns, inode, device FROM known_file");
  KERNIX_RETURN_IF_ERROR(select.ForEachRow([&](const Statement& row) -> absl::Status {
    KnownFile& file = files.emplace_back();
    file.path = std::string(row.Text(0));
    KERNIX_ASSIGN_OR_RETURN(file.digest, Digest::FromRaw(row.Bytes(1)));
    file.identity.size = static_cast<uint64_t>(row.Int(2));
    file.identity.mtime_ns = row.Int(3);
    file.identity.ctime_ns = row.Int(4);
    file.identity.inode = static_cast<uint64_t>(row.Int(5));
    file.identity.device = static_cast<uint64_t>(row.Int(6));
    return absl::OkStatus();
  }));
  return files;
}

absl::Status Index::SaveKnownFiles(const std::vector<KnownFile>& files) {
  const MutexLock lock(write_mutex_);
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  Statement& put = database_.Prepared(
      "INSERT OR REPLACE INTO known_file (path, digest, size, mtime_ns, ctime_ns, inode, device) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (const KnownFile& file : files) {
    const FileIdentity& is = file.identity;
    KERNIX_RETURN_IF_ERROR(
        put.Bind(file.path, file.digest, is.size, is.mtime_ns, is.ctime_ns, is.inode, is.device).Run());
  }
  return transaction.Commit();
}

absl::Status Index::Commit(Transaction& transaction, Books& books) {
  KERNIX_RETURN_IF_ERROR(Measure(books));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  books_ = books;
  return absl::OkStatus();
}

// --- Within a transaction --------------------------------------------------------------------------------------------

// Pages that are partly empty count in full; free ones do not, since the next rows take them.
absl::Status Index::Measure(Books& books) {
  constexpr char kUsedBytes[] =
      "SELECT (page_count - freelist_count) * page_size "
      "FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";
  constexpr uint64_t kSmallIndex = 1 << 20;
  KERNIX_ASSIGN_OR_RETURN(const int64_t used, database_.QueryInt(kUsedBytes));
  books.holdings.index_bytes = static_cast<uint64_t>(used) - std::min(static_cast<uint64_t>(used), kSmallIndex);
  return absl::OkStatus();
}

absl::Status Index::PutRow(const Entry& entry) {
  KERNIX_ASSIGN_OR_RETURN(const int64_t header_set, PutHeaders(EncodeHeaders(entry)));
  constexpr char kPut[] =
      "INSERT INTO entry (key, artifact, size, created_unix_ms, last_used_unix_ms, hits, header_set, detail) "
      "VALUES (?, ?, ?, ?, ?, 0, ?, ?)";
  KERNIX_RETURN_IF_ERROR(database_.Prepared(kPut)
                             .Bind(entry.key, entry.artifact, entry.size, entry.created_unix_ms, entry.created_unix_ms,
                                   header_set, Blob{entry.detail.SerializeAsString()})
                             .Run());
  if (!entry.trace.empty()) {
    Statement& put_trace = database_.Prepared("INSERT INTO build_trace (key, trace) VALUES (?, ?)");
    KERNIX_RETURN_IF_ERROR(put_trace.Bind(entry.key, Blob{entry.trace}).Run());
  }
  if (entry.inputs.empty()) return absl::OkStatus();
  Statement& put_inputs = database_.Prepared("INSERT INTO build_inputs (key, inputs) VALUES (?, ?)");
  return put_inputs.Bind(entry.key, Blob{EncodeInputs(entry)}).Run();
}

absl::StatusOr<int64_t> Index::PutHeaders(const std::string& headers) {
  const Digest digest = DigestOf(headers);
  KERNIX_RETURN_IF_ERROR(database_.Prepared("INSERT OR IGNORE INTO header_set (digest, headers) VALUES (?, ?)")
                             .Bind(digest, Blob{headers})
                             .Run());
  int64_t id = 0;
  KERNIX_RETURN_IF_ERROR(database_.Prepared("SELECT id FROM header_set WHERE digest = ?")
                             .Bind(digest)
                             .ForEachRow([&](const Statement& row) { id = row.Int(0); }));
  return id;
}

absl::Status Index::PutTag(const Digest& key, const Tag& tag, Books& books) {
  constexpr char kPutTag[] =
      "INSERT OR IGNORE INTO tag (name, key, owner) SELECT ?1, key, ?2 FROM entry WHERE key = ?3 "
      "AND (SELECT count(*) FROM tag WHERE key = ?3 AND owner = ?2) < ?4";
  KERNIX_RETURN_IF_ERROR(database_.Prepared(kPutTag).Bind(tag.name, tag.owner, key, kMaxTagsPerOwner).Run());
  books.holdings.tags += database_.Changes();
  return absl::OkStatus();
}

absl::Status Index::Apply(const PendingUses& uses, Books& books) {
  constexpr char kUse[] =
      "UPDATE entry SET last_used_unix_ms = max(last_used_unix_ms, ?), hits = hits + ? WHERE key = ?";
  for (const auto& [key, use] : uses) {
    KERNIX_RETURN_IF_ERROR(Uncharge(key, books));
    KERNIX_RETURN_IF_ERROR(database_.Prepared(kUse).Bind(use.last_used_unix_ms, use.hits, key).Run());
    for (const Tag& tag : use.tags) KERNIX_RETURN_IF_ERROR(PutTag(key, tag, books));
    KERNIX_RETURN_IF_ERROR(Charge(key, books));
  }
  return absl::OkStatus();
}

absl::Status Index::DropTags(const Digest& key, std::optional<UserId> owner, Dropped& dropped, Books& books) {
  KERNIX_RETURN_IF_ERROR(database_.Prepared("DELETE FROM tag WHERE key = ? AND (? = 0 OR owner = ?)")
                             .Bind(key, owner.has_value(), owner.value_or(UserId{}))
                             .Run());
  books.holdings.tags -= database_.Changes();
  dropped.tags += database_.Changes();
  return absl::OkStatus();
}

absl::Status Index::Uncharge(const Digest& key, Books& books) {
  if (!books.of_users.has_value()) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(const auto holders,
                          ReadHolders(database_.Prepared(SelectHolders("WHERE tag.key = ?")).Bind(key)));
  for (const auto& [user, held] : holders) (*books.of_users)[user] -= held;
  return absl::OkStatus();
}

absl::Status Index::Charge(const Digest& key, Books& books) {
  if (!books.of_users.has_value()) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(const auto holders,
                          ReadHolders(database_.Prepared(SelectHolders("WHERE tag.key = ?")).Bind(key)));
  for (const auto& [user, held] : holders) (*books.of_users)[user] += held;
  return absl::OkStatus();
}

absl::Status Index::ChargeOrDrop(const Digest& key, Dropped& dropped, Books& books) {
  KERNIX_ASSIGN_OR_RETURN(const bool is_tagged,
                          database_.Prepared("SELECT 1 FROM tag WHERE key = ? LIMIT 1").Bind(key).HasRow());
  return is_tagged ? Charge(key, books) : DropRow(key, dropped, books);
}

absl::Status Index::DropRow(const Digest& key, Dropped& dropped, Books& books) {
  KERNIX_ASSIGN_OR_RETURN(const std::optional<RowLinks> links, LinksOf(database_, key));
  if (!links.has_value()) return absl::OkStatus();
  for (const char* table : {"build_inputs", "build_trace", "entry"}) {
    KERNIX_RETURN_IF_ERROR(database_.Prepared(StrCat("DELETE FROM ", table, " WHERE key = ?")).Bind(key).Run());
  }
  constexpr char kDropHeaders[] =
      "DELETE FROM header_set WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entry WHERE header_set = ?1)";
  KERNIX_RETURN_IF_ERROR(database_.Prepared(kDropHeaders).Bind(links->header_set).Run());
  dropped.keys.push_back(key);
  KERNIX_ASSIGN_OR_RETURN(const bool still_named, Names(database_, links->artifact));
  if (still_named) return absl::OkStatus();
  books.holdings.artifact_bytes -= links->size;
  dropped.bytes += links->size;
  dropped.artifacts.push_back(links->artifact);
  return absl::OkStatus();
}

}  // namespace kernix::cache
