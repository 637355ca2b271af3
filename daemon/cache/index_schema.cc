// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index_schema.h"

#include <cstdint>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/cache/rows.pb.h"

namespace kernix::cache {
namespace {

// A store has one process, so a wait can only be for our own other connections.
constexpr int kBusyTimeoutMs = 10'000;

// Another schema gets another number. Stores that have another number are refused.
constexpr int64_t kSchema = 2;

// The inputs and the trace of a build have tables of their own, because no hit needs them.
constexpr char kTables[] = R"sql(
  CREATE TABLE header_set (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    headers BLOB NOT NULL
  );
  CREATE TABLE entry (
    key BLOB PRIMARY KEY NOT NULL,
    artifact BLOB NOT NULL,
    size INTEGER NOT NULL,
    created_unix_ms INTEGER NOT NULL,
    last_used_unix_ms INTEGER NOT NULL,
    hits INTEGER NOT NULL,
    header_set INTEGER NOT NULL REFERENCES header_set (id),
    detail BLOB NOT NULL
  );
  CREATE INDEX entry_by_artifact ON entry (artifact, size);
  CREATE INDEX entry_by_last_use ON entry (last_used_unix_ms, created_unix_ms);
  CREATE INDEX entry_by_header_set ON entry (header_set);
  CREATE TABLE tag (
    name TEXT NOT NULL,
    key BLOB NOT NULL REFERENCES entry (key),
    owner INTEGER NOT NULL,
    pinned INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, key, owner)
  ) WITHOUT ROWID;
  CREATE INDEX tag_by_key ON tag (key);
  CREATE TABLE build_inputs (
    key BLOB PRIMARY KEY NOT NULL REFERENCES entry (key),
    inputs BLOB NOT NULL
  );
  CREATE TABLE build_trace (
    key BLOB PRIMARY KEY NOT NULL REFERENCES entry (key),
    trace BLOB NOT NULL
  );
  CREATE TABLE known_file (
    path TEXT PRIMARY KEY NOT NULL,
    digest BLOB NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    device INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE counter (
    id INTEGER PRIMARY KEY,
    value INTEGER NOT NULL
  );
)sql";

absl::Status CheckIntegrity(Database& database) {
  std::string answer = "no answer";
  KERNIX_RETURN_IF_ERROR(
      database.Prepared("PRAGMA quick_check(1)").ForEachRow([&](const Statement& row) { answer = row.Text(0); }));
  return answer == "ok" ? absl::OkStatus() : absl::DataLossError(StrCat("integrity check: ", answer));
}

// After a large transaction, the next one after a checkpoint cuts the write-ahead log.
constexpr char kShortLog[] = "PRAGMA journal_size_limit = 4194304";

constexpr char kAwaitDisk[] = "PRAGMA synchronous = FULL";

// In one transaction: each one waits for the disk.
absl::Status MakeTables(Database& database) {
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  KERNIX_RETURN_IF_ERROR(database.Execute(kTables));
  KERNIX_RETURN_IF_ERROR(database.Execute(StrCat("PRAGMA user_version = ", kSchema)));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  return database.Execute(kAwaitDisk);
}

}  // namespace

absl::Status MadeByAnother(std::string_view what, int64_t number, int64_t ours) {
  return absl::FailedPreconditionError(StrCat("another kernix made it, with ", what, " ", number,
                                              " where this one has ", ours, "; remove its folder to begin anew"));
}

absl::Status CheckIndexFile(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(Database database, OpenIndexConnection(path));
  return CheckIntegrity(database);
}

absl::Status CopyIndexFile(const std::string& path, const std::string& to) {
  KERNIX_ASSIGN_OR_RETURN(Database database, OpenIndexConnection(path));
  return database.Prepared("VACUUM INTO ?").Bind(to).Run();
}

absl::StatusOr<Database> OpenIndexConnection(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(Database database, Database::Open(path, kBusyTimeoutMs));
  KERNIX_ASSIGN_OR_RETURN(const int64_t pages, database.QueryInt("PRAGMA page_count"));
  KERNIX_RETURN_IF_ERROR(database.Execute(pages == 0 ? "PRAGMA synchronous = OFF" : kAwaitDisk));
  KERNIX_RETURN_IF_ERROR(database.Execute("PRAGMA journal_mode = WAL"));
  KERNIX_RETURN_IF_ERROR(database.Execute(kShortLog));
  return database;
}

// With a write-ahead log, NORMAL syncs at checkpoints alone.
DiskNotAwaited::DiskNotAwaited(Database& database) : database_(database) {
  database_.Execute("PRAGMA synchronous = NORMAL").IgnoreError();
}

DiskNotAwaited::~DiskNotAwaited() { database_.Execute(kAwaitDisk).IgnoreError(); }

absl::Status PrepareIndex(Database& database) {
  KERNIX_RETURN_IF_ERROR(CheckIntegrity(database));
  KERNIX_ASSIGN_OR_RETURN(const int64_t schema, database.QueryInt("PRAGMA user_version"));
  if (schema == 0) return MakeTables(database);
  if (schema == kSchema) return absl::OkStatus();
  return MadeByAnother("schema", schema, kSchema);
}

std::string EncodeInputs(const Entry& entry) {
  internal::BuildInputs inputs;
  for (const BuildInput& input : entry.inputs) {
    internal::BuildInputs::Input* added = inputs.add_input();
    added->set_kind(static_cast<int32_t>(input.kind));
    added->set_name(input.name);
    added->set_value(input.value);
  }
  return inputs.SerializeAsString();
}

std::string EncodeHeaders(const Entry& entry) {
  internal::HeaderSet set;
  *set.mutable_header() = ToMessages(entry.toolchain_headers);
  return set.SerializeAsString();
}

absl::StatusOr<Entry> DecodeRow(const Statement& row) {
  Entry entry;
  KERNIX_ASSIGN_OR_RETURN(entry.key, Digest::FromRaw(row.Bytes(0)));
  KERNIX_ASSIGN_OR_RETURN(entry.artifact, Digest::FromRaw(row.Bytes(1)));
  entry.size = static_cast<uint64_t>(row.Int(2));
  entry.created_unix_ms = row.Int(3);
  const std::string_view detail = row.Bytes(4);
  if (entry.detail.ParseFromArray(detail.data(), static_cast<int>(detail.size()))) return entry;
  return absl::DataLossError("index: an entry's detail cannot be read");
}

absl::Status DecodeHeaders(std::string_view bytes, Entry& entry) {
  internal::HeaderSet set;
  if (!set.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("index: a set of headers cannot be read");
  }
  KERNIX_ASSIGN_OR_RETURN(entry.toolchain_headers, FromMessages(std::move(*set.mutable_header())));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BuildInput>> DecodeInputs(std::string_view bytes) {
  internal::BuildInputs decoded;
  if (!decoded.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("index: the inputs of a build cannot be read");
  }
  std::vector<BuildInput> inputs;
  inputs.reserve(decoded.input_size());
  for (internal::BuildInputs::Input& input : *decoded.mutable_input()) {
    inputs.push_back(
        {static_cast<InputKind>(input.kind()), std::move(*input.mutable_name()), std::move(*input.mutable_value())});
  }
  return inputs;
}

}  // namespace kernix::cache
