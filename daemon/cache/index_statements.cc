// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index_statements.h"

#include <limits>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/cache/index_schema.h"

namespace kernix::cache {
namespace {

struct Query {
  Statement* statement;
  std::string sql;
};

constexpr char kUsedBytes[] =
    "SELECT (page_count - freelist_count) * page_size "
    "FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";

constexpr char kIsNamed[] = "SELECT 1 FROM entry WHERE artifact = ? LIMIT 1";

absl::Status PrepareAll(Database& database, const std::vector<Query>& queries) {
  for (const Query& query : queries) {
    KERNIX_ASSIGN_OR_RETURN(*query.statement, database.Prepare(query.sql));
  }
  return absl::OkStatus();
}

// The condition of a TagFilter, with the parameters of BindFilter():
constexpr char kMatchingTags[] =
    "WHERE (?1 = 0 OR name = ?2) AND (?3 = 0 OR owner = ?4) AND (?6 = 0 OR pinned = 0) "
    "AND (?7 = '' OR substr(lower(hex(tag.key)), 1, length(?7)) = ?7) ";
constexpr char kLastUsed[] = "last_used_unix_ms < ?5";

void BindFilter(Statement& statement, const TagFilter& filter) {
  statement.BindInt(1, filter.name.has_value())
      .BindText(2, filter.name.value_or(""))
      .BindInt(3, filter.owner.has_value())
      .BindInt(4, ToNumber(filter.owner.value_or(UserId{})))
      .BindInt(5, filter.unused_since_unix_ms.value_or(std::numeric_limits<int64_t>::max()))
      .BindInt(6, filter.spares_pinned)
      .BindText(7, filter.key_prefix);
}

constexpr char kHasTag[] =
    "SELECT 1 FROM entry JOIN tag ON tag.key = entry.key WHERE entry.artifact = ? AND tag.owner = ? LIMIT 1";

// What each user holds of the tags that `which` selects. A tag's name is in the table and in its index.
std::string SelectHolders(std::string_view which) {
  return StrCat("SELECT owner, sum(bytes) FROM (SELECT owner, size + length(detail) + coalesce(length(inputs), 0) + ",
                "coalesce(length(trace), 0) + sum(2 * length(CAST(name AS BLOB)) + 100) AS bytes ",
                "FROM tag JOIN entry ON entry.key = tag.key LEFT JOIN build_inputs ON build_inputs.key = tag.key ",
                "LEFT JOIN build_trace ON build_trace.key = tag.key ", which,
                " GROUP BY owner, tag.key) GROUP BY owner");
}

constexpr char kOldestOf[] =
    "SELECT key FROM entry WHERE key <> ?1 AND (SELECT max(pinned) FROM tag WHERE tag.key = entry.key AND owner = ?2) "
    "= 0 "
    "ORDER BY last_used_unix_ms, created_unix_ms LIMIT 1";

std::string SelectEntry() {
  return StrCat("SELECT ", kEntryColumns,
                ", headers FROM entry JOIN header_set ON entry.header_set = header_set.id WHERE entry.key = ?");
}

constexpr char kRecent[] =
    "SELECT entry.key, coalesce(inputs, x'') FROM tag JOIN entry ON entry.key = tag.key "
    "LEFT JOIN build_inputs ON build_inputs.key = entry.key WHERE tag.name = ? AND tag.owner = ? "
    "ORDER BY last_used_unix_ms DESC, created_unix_ms DESC, entry.key LIMIT ?";

// SQLite reads no detail to tell its length.
constexpr char kWeight[] =
    "SELECT count(*), coalesce(sum(tag.pinned), 0), "
    "coalesce(sum(length(detail) + length(CAST(tag.name AS BLOB)) + 500), 0) "
    "FROM entry JOIN tag ON tag.key = entry.key ";

constexpr char kShares[] =
    "SELECT owner, sum(entries), sum(size) FROM (SELECT owner, count(*) AS entries, size FROM tag JOIN entry "
    "ON entry.key = tag.key WHERE ?1 = 0 OR owner = ?2 GROUP BY owner, artifact) GROUP BY owner ORDER BY 3 DESC";

constexpr char kArtifactsAfter[] =
    "SELECT DISTINCT artifact, size FROM entry WHERE artifact > ? ORDER BY artifact LIMIT ?";

std::string SelectTagged(std::string_view rest) {
  return StrCat("SELECT ", kEntryColumns, ", last_used_unix_ms, hits, tag.name, tag.owner, tag.pinned ",
                "FROM entry JOIN tag ON tag.key = entry.key ", rest);
}

// The 32 bytes of a digest, in the form of a column.
std::string_view ColumnOf(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

absl::StatusOr<std::vector<Digest>> ReadDigests(Statement& select) {
  std::vector<Digest> digests;
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return digests;
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(select.Blob(0)));
    digests.push_back(digest);
  }
}

absl::StatusOr<std::map<UserId, uint64_t>> ReadHolders(Statement& select) {
  std::map<UserId, uint64_t> holders;
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return holders;
    holders[static_cast<UserId>(select.Int(0))] = static_cast<uint64_t>(select.Int(1));
  }
}

}  // namespace

absl::Status IndexWriter::Open(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(database_, OpenIndexConnection(path));
  KERNIX_RETURN_IF_ERROR(PrepareIndex(database_));
  return PrepareAll(
      database_,
      {{&put_headers_, "INSERT OR IGNORE INTO header_set (digest, headers) VALUES (?, ?)"},
       {&headers_id_, "SELECT id FROM header_set WHERE digest = ?"},
       {&drop_headers_,
        "DELETE FROM header_set WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entry WHERE header_set = ?1)"},
       {&put_,
        "INSERT INTO entry (key, artifact, size, created_unix_ms, last_used_unix_ms, hits, header_set, detail) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
       {&put_inputs_, "INSERT OR REPLACE INTO build_inputs (key, inputs) VALUES (?, ?)"},
       {&drop_inputs_, "DELETE FROM build_inputs WHERE key = ?"},
       {&put_trace_, "INSERT OR REPLACE INTO build_trace (key, trace) VALUES (?, ?)"},
       {&drop_trace_, "DELETE FROM build_trace WHERE key = ?"},
       {&links_, "SELECT artifact, size, header_set FROM entry WHERE key = ?"},
       {&named_, kIsNamed},
       {&drop_, "DELETE FROM entry WHERE key = ?"},
       {&put_tag_,
        "INSERT OR IGNORE INTO tag (name, key, owner) SELECT ?1, key, ?2 FROM entry WHERE key = ?3 "
        "AND (SELECT count(*) FROM tag WHERE key = ?3 AND owner = ?2) < ?4"},
       {&drop_tags_of_, "DELETE FROM tag WHERE key = ?"},
       {&drop_tags_of_owner_, "DELETE FROM tag WHERE key = ? AND owner = ?"},
       {&drop_tags_,
        StrCat("DELETE FROM tag ", kMatchingTags, "AND key IN (SELECT key FROM entry WHERE ", kLastUsed, ")")},
       {&tagged_, StrCat("SELECT DISTINCT tag.key FROM tag JOIN entry ON entry.key = tag.key ", kMatchingTags, "AND ",
                         kLastUsed)},
       {&set_pinned_, StrCat("UPDATE tag SET pinned = ?8 ", kMatchingTags)},
       {&is_tagged_, "SELECT 1 FROM tag WHERE key = ? LIMIT 1"},
       {&oldest_of_, kOldestOf},
       {&holders_of_, SelectHolders("WHERE tag.key = ?")},
       {&holders_, SelectHolders("")},
       {&pinned_, SelectHolders("WHERE pinned")},
       {&use_, "UPDATE entry SET last_used_unix_ms = max(last_used_unix_ms, ?), hits = hits + ? WHERE key = ?"},
       {&used_bytes_, kUsedBytes},
       {&totals_, "SELECT id, value FROM counter"},
       {&count_,
        "INSERT INTO counter (id, value) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET value = value + "
        "excluded.value"},
       {&known_files_, "SELECT path, digest, size, mtime_ns, ctime_ns, inode, device FROM known_file"},
       {&put_known_file_,
        "INSERT OR REPLACE INTO known_file (path, digest, size, mtime_ns, ctime_ns, inode, device) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)"}});
}

absl::Status IndexWriter::Put(const Entry& entry) {
  KERNIX_ASSIGN_OR_RETURN(const int64_t header_set, PutHeaders(EncodeHeaders(entry)));
  put_.BindBlob(1, ColumnOf(entry.key))
      .BindBlob(2, ColumnOf(entry.artifact))
      .BindInt(3, static_cast<int64_t>(entry.size))
      .BindInt(4, entry.created_unix_ms)
      .BindInt(5, entry.created_unix_ms)
      .BindInt(6, 0)
      .BindInt(7, header_set)
      .BindBlob(8, EncodeDetail(entry));
  KERNIX_RETURN_IF_ERROR(put_.Run());
  if (entry.trace.empty()) {
    KERNIX_RETURN_IF_ERROR(drop_trace_.BindBlob(1, ColumnOf(entry.key)).Run());
  } else {
    KERNIX_RETURN_IF_ERROR(put_trace_.BindBlob(1, ColumnOf(entry.key)).BindBlob(2, entry.trace).Run());
  }
  if (entry.inputs.empty()) return absl::OkStatus();
  return put_inputs_.BindBlob(1, ColumnOf(entry.key)).BindBlob(2, EncodeInputs(entry)).Run();
}

absl::StatusOr<int64_t> IndexWriter::PutHeaders(const std::string& headers) {
  const Digest digest = DigestOf(headers);
  put_headers_.BindBlob(1, ColumnOf(digest)).BindBlob(2, headers);
  KERNIX_RETURN_IF_ERROR(put_headers_.Run());
  const ScopedReset reset(headers_id_);
  KERNIX_ASSIGN_OR_RETURN(const bool row, headers_id_.BindBlob(1, ColumnOf(digest)).Step());
  if (!row) return absl::InternalError("index: a set of headers vanished");
  return headers_id_.Int(0);
}

absl::StatusOr<std::optional<RowLinks>> IndexWriter::Links(const Digest& key) {
  const ScopedReset reset(links_);
  KERNIX_ASSIGN_OR_RETURN(const bool row, links_.BindBlob(1, ColumnOf(key)).Step());
  if (!row) return std::nullopt;
  RowLinks links;
  KERNIX_ASSIGN_OR_RETURN(links.artifact, Digest::FromRaw(links_.Blob(0)));
  links.size = static_cast<uint64_t>(links_.Int(1));
  links.header_set = links_.Int(2);
  return links;
}

absl::Status IndexWriter::Drop(const Digest& key, int64_t header_set) {
  KERNIX_RETURN_IF_ERROR(drop_inputs_.BindBlob(1, ColumnOf(key)).Run());
  KERNIX_RETURN_IF_ERROR(drop_trace_.BindBlob(1, ColumnOf(key)).Run());
  KERNIX_RETURN_IF_ERROR(drop_.BindBlob(1, ColumnOf(key)).Run());
  return drop_headers_.BindInt(1, header_set).Run();
}

absl::StatusOr<bool> IndexWriter::IsNamed(const Digest& artifact) {
  const ScopedReset reset(named_);
  return named_.BindBlob(1, ColumnOf(artifact)).Step();
}

absl::StatusOr<std::optional<Digest>> IndexWriter::OldestOf(UserId user, const std::optional<Digest>& keep) {
  const ScopedReset reset(oldest_of_);
  oldest_of_.BindBlob(1, keep ? ColumnOf(*keep) : std::string_view()).BindInt(2, ToNumber(user));
  KERNIX_ASSIGN_OR_RETURN(const bool row, oldest_of_.Step());
  if (!row) return std::nullopt;
  return Digest::FromRaw(oldest_of_.Blob(0));
}

absl::StatusOr<std::map<UserId, uint64_t>> IndexWriter::HoldersOf(const Digest& key) {
  const ScopedReset reset(holders_of_);
  return ReadHolders(holders_of_.BindBlob(1, ColumnOf(key)));
}

absl::StatusOr<std::map<UserId, uint64_t>> IndexWriter::Holders() {
  const ScopedReset reset(holders_);
  return ReadHolders(holders_);
}

absl::StatusOr<std::map<UserId, uint64_t>> IndexWriter::Pinned() {
  const ScopedReset reset(pinned_);
  return ReadHolders(pinned_);
}

absl::StatusOr<uint64_t> IndexWriter::SetPinned(const TagFilter& filter, bool pinned) {
  BindFilter(set_pinned_, filter);
  KERNIX_RETURN_IF_ERROR(set_pinned_.BindInt(8, pinned).Run());
  return static_cast<uint64_t>(database_.Changes());
}

absl::StatusOr<bool> IndexWriter::PutTag(const Digest& key, const Tag& tag) {
  put_tag_.BindText(1, tag.name)
      .BindInt(2, ToNumber(tag.owner))
      .BindBlob(3, ColumnOf(key))
      .BindInt(4, kMaxTagsPerOwner);
  KERNIX_RETURN_IF_ERROR(put_tag_.Run());
  return database_.Changes() > 0;
}

absl::StatusOr<uint64_t> IndexWriter::DropTagsOf(const Digest& key) {
  KERNIX_RETURN_IF_ERROR(drop_tags_of_.BindBlob(1, ColumnOf(key)).Run());
  return static_cast<uint64_t>(database_.Changes());
}

absl::StatusOr<uint64_t> IndexWriter::DropTagsOf(const Digest& key, UserId owner) {
  KERNIX_RETURN_IF_ERROR(drop_tags_of_owner_.BindBlob(1, ColumnOf(key)).BindInt(2, ToNumber(owner)).Run());
  return static_cast<uint64_t>(database_.Changes());
}

absl::StatusOr<uint64_t> IndexWriter::DropTags(const TagFilter& filter) {
  BindFilter(drop_tags_, filter);
  KERNIX_RETURN_IF_ERROR(drop_tags_.Run());
  return static_cast<uint64_t>(database_.Changes());
}

absl::StatusOr<std::vector<Digest>> IndexWriter::Tagged(const TagFilter& filter) {
  const ScopedReset reset(tagged_);
  BindFilter(tagged_, filter);
  return ReadDigests(tagged_);
}

absl::StatusOr<bool> IndexWriter::IsTagged(const Digest& key) {
  const ScopedReset reset(is_tagged_);
  return is_tagged_.BindBlob(1, ColumnOf(key)).Step();
}

absl::StatusOr<uint64_t> IndexWriter::PutUse(const Digest& key, const PendingUse& use) {
  use_.BindInt(1, use.last_used_unix_ms).BindInt(2, static_cast<int64_t>(use.hits)).BindBlob(3, ColumnOf(key));
  KERNIX_RETURN_IF_ERROR(use_.Run());
  uint64_t new_tags = 0;
  for (const Tag& tag : use.tags) {
    KERNIX_ASSIGN_OR_RETURN(const bool is_new, PutTag(key, tag));
    if (is_new) ++new_tags;
  }
  return new_tags;
}

absl::StatusOr<uint64_t> IndexWriter::UsedBytes() {
  const ScopedReset reset(used_bytes_);
  KERNIX_ASSIGN_OR_RETURN(const bool row, used_bytes_.Step());
  if (!row) return absl::InternalError("index: its size is not known");
  return static_cast<uint64_t>(used_bytes_.Int(0));
}

absl::StatusOr<Totals> IndexWriter::ReadTotals() {
  const ScopedReset reset(totals_);
  Totals totals{};
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, totals_.Step());
    if (!row) return totals;
    const auto id = static_cast<size_t>(totals_.Int(0));
    if (id < totals.size()) totals[id] = static_cast<uint64_t>(totals_.Int(1));
  }
}

absl::Status IndexWriter::Count(Total total, uint64_t n) {
  return count_.BindInt(1, static_cast<int64_t>(total)).BindInt(2, static_cast<int64_t>(n)).Run();
}

absl::StatusOr<std::vector<KnownFile>> IndexWriter::KnownFiles() {
  const ScopedReset reset(known_files_);
  std::vector<KnownFile> files;
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, known_files_.Step());
    if (!row) return files;
    const absl::StatusOr<Digest> digest = Digest::FromRaw(known_files_.Blob(1));
    if (!digest.ok()) continue;  // a damaged row; the file will be read again
    KnownFile& file = files.emplace_back();
    file.path = std::string(known_files_.Text(0));
    file.digest = *digest;
    file.identity.size = static_cast<uint64_t>(known_files_.Int(2));
    file.identity.mtime_ns = known_files_.Int(3);
    file.identity.ctime_ns = known_files_.Int(4);
    file.identity.inode = static_cast<uint64_t>(known_files_.Int(5));
    file.identity.device = static_cast<uint64_t>(known_files_.Int(6));
  }
}

absl::Status IndexWriter::PutKnownFile(const KnownFile& file) {
  put_known_file_.BindText(1, file.path)
      .BindBlob(2, ColumnOf(file.digest))
      .BindInt(3, static_cast<int64_t>(file.identity.size))
      .BindInt(4, file.identity.mtime_ns)
      .BindInt(5, file.identity.ctime_ns)
      .BindInt(6, static_cast<int64_t>(file.identity.inode))
      .BindInt(7, static_cast<int64_t>(file.identity.device));
  return put_known_file_.Run();
}

absl::Status IndexWriter::TidyKnownFiles() {
  KERNIX_RETURN_IF_ERROR(database_.Execute("DELETE FROM known_file WHERE length(CAST(digest AS BLOB)) <> 32"));
  constexpr int64_t kMost = 50'000;
  KERNIX_ASSIGN_OR_RETURN(const int64_t count, database_.QueryInt("SELECT count(*) FROM known_file"));
  return count > kMost ? database_.Execute("DELETE FROM known_file") : absl::OkStatus();
}

absl::Status IndexReader::Open(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(database_, OpenIndexConnection(path));
  constexpr char kOrder[] = " ORDER BY last_used_unix_ms DESC, created_unix_ms DESC, entry.key, tag.name, tag.owner";
  return PrepareAll(database_, {{&find_, SelectEntry()},
                                {&list_, SelectTagged(StrCat(kMatchingTags, "AND ", kLastUsed, kOrder))},
                                {&weigh_, StrCat(kWeight, kMatchingTags, "AND ", kLastUsed)},
                                {&shares_, kShares},
                                {&recent_, kRecent},
                                {&trace_of_, "SELECT trace FROM build_trace WHERE key = ?"},
                                {&keys_of_, "SELECT key FROM entry WHERE artifact = ?"},
                                {&has_tag_, kHasTag},
                                {&artifacts_, "SELECT DISTINCT artifact FROM entry"},
                                {&artifacts_after_, kArtifactsAfter},
                                {&named_, kIsNamed}});
}

absl::StatusOr<std::optional<Entry>> IndexReader::Find(const Digest& key) {
  const ScopedReset reset(find_);
  KERNIX_ASSIGN_OR_RETURN(const bool row, find_.BindBlob(1, ColumnOf(key)).Step());
  if (!row) return std::nullopt;
  KERNIX_ASSIGN_OR_RETURN(Entry entry, DecodeRow(find_));
  KERNIX_RETURN_IF_ERROR(DecodeHeaders(find_.Blob(kEntryColumnCount), entry));
  return entry;
}

absl::StatusOr<std::vector<v1::CacheShare>> IndexReader::Shares(std::optional<UserId> owner) {
  const ScopedReset reset(shares_);
  shares_.BindInt(1, owner.has_value()).BindInt(2, ToNumber(owner.value_or(UserId{})));
  std::vector<v1::CacheShare> shares;
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, shares_.Step());
    if (!row) return shares;
    v1::CacheShare& share = shares.emplace_back();
    share.set_owner(static_cast<uint32_t>(shares_.Int(0)));
    share.set_entries(static_cast<uint64_t>(shares_.Int(1)));
    share.set_bytes(static_cast<uint64_t>(shares_.Int(2)));
  }
}

absl::StatusOr<std::vector<ListedEntry>> IndexReader::List(const TagFilter& filter) {
  const ScopedReset reset(list_);
  BindFilter(list_, filter);
  std::vector<ListedEntry> entries;
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) return entries;
    absl::StatusOr<Entry> entry = DecodeRow(list_);
    if (!entry.ok()) {  // must not hide all others
      Log(LogLevel::kWarning, "entry_not_listed", {{"error", entry.status().message()}});
      continue;
    }
    ListedEntry& listed = entries.emplace_back();
    listed.entry = *std::move(entry);
    listed.last_used_unix_ms = list_.Int(kEntryColumnCount);
    listed.hits = static_cast<uint64_t>(list_.Int(kEntryColumnCount + 1));
    listed.tag = {std::string(list_.Text(kEntryColumnCount + 2)),
                  static_cast<UserId>(list_.Int(kEntryColumnCount + 3))};
    listed.pinned = list_.Int(kEntryColumnCount + 4) != 0;
  }
}

absl::StatusOr<ListWeight> IndexReader::Weigh(const TagFilter& filter) {
  const ScopedReset reset(weigh_);
  BindFilter(weigh_, filter);
  KERNIX_ASSIGN_OR_RETURN(const bool row, weigh_.Step());
  if (!row) return absl::InternalError("index: the entries cannot be counted");
  return ListWeight{static_cast<uint64_t>(weigh_.Int(0)), static_cast<uint64_t>(weigh_.Int(1)),
                    static_cast<uint64_t>(weigh_.Int(2))};
}

absl::StatusOr<std::vector<BuiltFrom>> IndexReader::Recent(const Tag& tag, size_t limit) {
  const ScopedReset reset(recent_);
  recent_.BindText(1, tag.name).BindInt(2, ToNumber(tag.owner)).BindInt(3, static_cast<int64_t>(limit));
  std::vector<BuiltFrom> recent;
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, recent_.Step());
    if (!row) return recent;
    BuiltFrom& built = recent.emplace_back();
    KERNIX_ASSIGN_OR_RETURN(built.key, Digest::FromRaw(recent_.Blob(0)));
    KERNIX_ASSIGN_OR_RETURN(built.inputs, DecodeInputs(recent_.Blob(1)));
  }
}

absl::StatusOr<std::string> IndexReader::TraceOf(const Digest& key) {
  const ScopedReset reset(trace_of_);
  KERNIX_ASSIGN_OR_RETURN(const bool row, trace_of_.BindBlob(1, ColumnOf(key)).Step());
  return std::string(row ? trace_of_.Blob(0) : "");
}

absl::StatusOr<std::vector<Digest>> IndexReader::KeysOf(const Digest& artifact) {
  const ScopedReset reset(keys_of_);
  return ReadDigests(keys_of_.BindBlob(1, ColumnOf(artifact)));
}

absl::StatusOr<bool> IndexReader::HasTagOf(UserId owner, const Digest& artifact) {
  const ScopedReset reset(has_tag_);
  return has_tag_.BindBlob(1, ColumnOf(artifact)).BindInt(2, ToNumber(owner)).Step();
}

absl::StatusOr<std::vector<Digest>> IndexReader::Artifacts() {
  const ScopedReset reset(artifacts_);
  return ReadDigests(artifacts_);
}

absl::StatusOr<std::vector<SizedArtifact>> IndexReader::ArtifactsAfter(const Digest& digest, size_t limit) {
  const ScopedReset reset(artifacts_after_);
  artifacts_after_.BindBlob(1, ColumnOf(digest)).BindInt(2, static_cast<int64_t>(limit));
  std::vector<SizedArtifact> artifacts;
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, artifacts_after_.Step());
    if (!row) return artifacts;
    SizedArtifact& artifact = artifacts.emplace_back();
    KERNIX_ASSIGN_OR_RETURN(artifact.digest, Digest::FromRaw(artifacts_after_.Blob(0)));
    artifact.size = static_cast<uint64_t>(artifacts_after_.Int(1));
  }
}

absl::StatusOr<bool> IndexReader::IsNamed(const Digest& artifact) {
  const ScopedReset reset(named_);
  return named_.BindBlob(1, ColumnOf(artifact)).Step();
}

}  // namespace kernix::cache
