// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index_statements.h"

#include <limits>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/cache/index_row.h"
#include "daemon/cache/index_schema.h"

namespace kernix::cache {
namespace {

struct Query {
  Statement* statement;
  std::string sql;
};

constexpr char kIsNamed[] = "SELECT 1 FROM entry WHERE artifact = ? LIMIT 1";

absl::Status PrepareAll(Database& database, const std::vector<Query>& queries) {
  for (const Query& query : queries) {
    KERNIX_ASSIGN_OR_RETURN(*query.statement, database.Prepare(query.sql));
  }
  return absl::OkStatus();
}

// A module has one or two names. Who makes up thousands for one key gets no more of them noted; others do.
constexpr int kMaxLabels = 1000;

// What one of its labels matches.
constexpr char kMatching[] = "WHERE (?1 = 0 OR label.name = ?2) AND (?3 = 0 OR label.owner = ?4) ";

constexpr char kHasLabel[] =
    "SELECT 1 FROM entry JOIN label ON label.key = entry.key WHERE entry.artifact = ? AND label.owner = ? LIMIT 1";

constexpr char kWithHeaders[] = " FROM entry JOIN header_set ON entry.header_set = header_set.id ";

std::string SelectLabelled(std::string_view rest) {
  return StrCat("SELECT ", kEntryColumns, ", label.name, label.owner", kWithHeaders,
                "JOIN label ON label.key = entry.key ", rest);
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

}  // namespace

std::string_view ColumnOf(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

absl::Status IndexWriter::Open(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(database_, OpenIndexConnection(path));
  KERNIX_RETURN_IF_ERROR(MigrateIndex(database_));
  return PrepareAll(
      database_,
      {{&put_headers_, "INSERT OR IGNORE INTO header_set (digest, headers) VALUES (?, ?)"},
       {&headers_id_, "SELECT id FROM header_set WHERE digest = ?"},
       {&drop_headers_,
        "DELETE FROM header_set WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entry WHERE header_set = ?1)"},
       {&put_,
        "INSERT INTO entry (key, artifact, size, created_unix_ms, last_used_unix_ms, hits, header_set, detail) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
       {&links_, "SELECT artifact, size, header_set FROM entry WHERE key = ?"},
       {&named_, kIsNamed},
       {&drop_, "DELETE FROM entry WHERE key = ?"},
       {&put_label_,
        "INSERT OR IGNORE INTO label (name, key, owner) SELECT ?1, key, ?2 FROM entry WHERE key = ?3 "
        "AND (SELECT count(*) FROM label WHERE key = ?3 AND owner = ?2) < ?4"},
       {&drop_labels_of_, "DELETE FROM label WHERE key = ?"},
       {&drop_labels_,
        "DELETE FROM label WHERE (?1 = 0 OR name = ?2) AND (?3 = 0 OR owner = ?4) "
        "AND key IN (SELECT key FROM entry WHERE last_used_unix_ms < ?5)"},
       {&unlabelled_, "SELECT key FROM entry WHERE NOT EXISTS (SELECT 1 FROM label WHERE label.key = entry.key)"},
       {&oldest_, "SELECT key FROM entry WHERE key <> ? ORDER BY last_used_unix_ms, created_unix_ms LIMIT 1"},
       {&use_, "UPDATE entry SET last_used_unix_ms = max(last_used_unix_ms, ?), hits = hits + ? WHERE key = ?"},
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
      .BindInt(5, entry.last_used_unix_ms)
      .BindInt(6, static_cast<int64_t>(entry.hits))
      .BindInt(7, header_set)
      .BindBlob(8, EncodeDetail(entry));
  return put_.Run();
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
  KERNIX_RETURN_IF_ERROR(drop_.BindBlob(1, ColumnOf(key)).Run());
  return drop_headers_.BindInt(1, header_set).Run();
}

absl::StatusOr<bool> IndexWriter::IsNamed(const Digest& artifact) {
  const ScopedReset reset(named_);
  return named_.BindBlob(1, ColumnOf(artifact)).Step();
}

absl::StatusOr<std::optional<Digest>> IndexWriter::OldestBut(const Digest* keep) {
  const ScopedReset reset(oldest_);
  oldest_.BindBlob(1, keep == nullptr ? std::string_view() : ColumnOf(*keep));
  KERNIX_ASSIGN_OR_RETURN(const bool row, oldest_.Step());
  if (!row) return std::nullopt;
  return Digest::FromRaw(oldest_.Blob(0));
}

absl::StatusOr<bool> IndexWriter::PutLabel(const Digest& key, const Label& label) {
  put_label_.BindText(1, label.name).BindInt(2, label.owner).BindBlob(3, ColumnOf(key)).BindInt(4, kMaxLabels);
  KERNIX_RETURN_IF_ERROR(put_label_.Run());
  return database_.Changes() > 0;
}

absl::StatusOr<uint64_t> IndexWriter::DropLabelsOf(const Digest& key) {
  KERNIX_RETURN_IF_ERROR(drop_labels_of_.BindBlob(1, ColumnOf(key)).Run());
  return static_cast<uint64_t>(database_.Changes());
}

absl::StatusOr<uint64_t> IndexWriter::DropLabels(const std::optional<std::string>& name,
                                                 const std::optional<uid_t>& owner,
                                                 const std::optional<int64_t>& unused_since_unix_ms) {
  drop_labels_.BindInt(1, name.has_value())
      .BindText(2, name.value_or(""))
      .BindInt(3, owner.has_value())
      .BindInt(4, owner.value_or(0))
      .BindInt(5, unused_since_unix_ms.value_or(std::numeric_limits<int64_t>::max()));
  KERNIX_RETURN_IF_ERROR(drop_labels_.Run());
  return static_cast<uint64_t>(database_.Changes());
}

absl::StatusOr<std::vector<Digest>> IndexWriter::Unlabelled() {
  const ScopedReset reset(unlabelled_);
  return ReadDigests(unlabelled_);
}

absl::StatusOr<uint64_t> IndexWriter::Apply(const PendingChanges& pending) {
  for (size_t i = 0; i < pending.counters.size(); ++i) {
    KERNIX_RETURN_IF_ERROR(Count(static_cast<Counter>(i), pending.counters[i]));
  }
  uint64_t new_labels = 0;
  for (const auto& [key, use] : pending.uses) {
    use_.BindInt(1, use.last_used_unix_ms).BindInt(2, static_cast<int64_t>(use.hits)).BindBlob(3, ColumnOf(key));
    KERNIX_RETURN_IF_ERROR(use_.Run());
    for (const Label& label : use.labels) {
      KERNIX_ASSIGN_OR_RETURN(const bool is_new, PutLabel(key, label));
      if (is_new) ++new_labels;
    }
  }
  return new_labels;
}

absl::Status IndexWriter::Count(Counter counter, uint64_t n) {
  if (n == 0) return absl::OkStatus();
  return count_.BindInt(1, static_cast<int64_t>(counter)).BindInt(2, static_cast<int64_t>(n)).Run();
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
    file.info.size = static_cast<uint64_t>(known_files_.Int(2));
    file.info.mtime_ns = known_files_.Int(3);
    file.info.ctime_ns = known_files_.Int(4);
    file.info.inode = static_cast<uint64_t>(known_files_.Int(5));
    file.info.device = static_cast<uint64_t>(known_files_.Int(6));
  }
}

absl::Status IndexWriter::PutKnownFile(const KnownFile& file) {
  put_known_file_.BindText(1, file.path)
      .BindBlob(2, ColumnOf(file.digest))
      .BindInt(3, static_cast<int64_t>(file.info.size))
      .BindInt(4, file.info.mtime_ns)
      .BindInt(5, file.info.ctime_ns)
      .BindInt(6, static_cast<int64_t>(file.info.inode))
      .BindInt(7, static_cast<int64_t>(file.info.device));
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
  constexpr char kOrder[] = "ORDER BY last_used_unix_ms DESC, created_unix_ms DESC, entry.key, label.name, label.owner";
  return PrepareAll(database_, {{&find_, StrCat("SELECT ", kEntryColumns, kWithHeaders, "WHERE entry.key = ?")},
                                {&list_, SelectLabelled(StrCat(kMatching, kOrder))},
                                {&keys_of_, "SELECT key FROM entry WHERE artifact = ?"},
                                {&has_label_, kHasLabel},
                                {&artifacts_, "SELECT DISTINCT artifact FROM entry"},
                                {&named_, kIsNamed},
                                {&counters_, "SELECT id, value FROM counter"}});
}

absl::StatusOr<std::optional<Entry>> IndexReader::Find(const Digest& key) {
  const ScopedReset reset(find_);
  KERNIX_ASSIGN_OR_RETURN(const bool row, find_.BindBlob(1, ColumnOf(key)).Step());
  if (!row) return std::nullopt;
  return DecodeRow(find_);
}

absl::StatusOr<std::vector<Entry>> IndexReader::List(const ListFilter& filter) {
  const ScopedReset reset(list_);
  list_.BindInt(1, filter.name ? 1 : 0).BindText(2, filter.name.value_or(""));
  list_.BindInt(3, filter.owner ? 1 : 0).BindInt(4, filter.owner.value_or(0));
  std::vector<Entry> entries;
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) return entries;
    KERNIX_ASSIGN_OR_RETURN(Entry entry, DecodeRow(list_));
    entry.label = {std::string(list_.Text(kEntryColumnCount)), static_cast<uid_t>(list_.Int(kEntryColumnCount + 1))};
    entries.push_back(std::move(entry));
  }
}

absl::StatusOr<std::vector<Digest>> IndexReader::KeysOf(const Digest& artifact) {
  const ScopedReset reset(keys_of_);
  return ReadDigests(keys_of_.BindBlob(1, ColumnOf(artifact)));
}

absl::StatusOr<bool> IndexReader::HasLabelOf(uid_t owner, const Digest& artifact) {
  const ScopedReset reset(has_label_);
  return has_label_.BindBlob(1, ColumnOf(artifact)).BindInt(2, owner).Step();
}

absl::StatusOr<std::vector<Digest>> IndexReader::Artifacts() {
  const ScopedReset reset(artifacts_);
  return ReadDigests(artifacts_);
}

absl::StatusOr<bool> IndexReader::IsNamed(const Digest& artifact) {
  const ScopedReset reset(named_);
  return named_.BindBlob(1, ColumnOf(artifact)).Step();
}

absl::StatusOr<Counters> IndexReader::ReadCounters() {
  const ScopedReset reset(counters_);
  Counters counters{};
  while (true) {
    KERNIX_ASSIGN_OR_RETURN(const bool row, counters_.Step());
    if (!row) return counters;
    const auto id = static_cast<size_t>(counters_.Int(0));
    if (id < counters.size()) counters[id] = static_cast<uint64_t>(counters_.Int(1));
  }
}

}  // namespace kernix::cache
