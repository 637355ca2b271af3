// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index_schema.h"

#include <iterator>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::cache {
namespace {

// A store has one process, so a wait can only be for our own other connections.
constexpr int kBusyTimeoutMs = 10'000;

// Migration i raises user_version from i to i + 1. Never change a migration that was released.
constexpr const char* kMigrations[] = {
    R"sql(
      CREATE TABLE header_set (
        id INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        headers BLOB NOT NULL
      );
      CREATE TABLE entry (
        key BLOB PRIMARY KEY NOT NULL,
        artifact BLOB NOT NULL,
        size INTEGER NOT NULL,
        name TEXT NOT NULL,
        owner INTEGER NOT NULL,
        created_unix_ms INTEGER NOT NULL,
        last_used_unix_ms INTEGER NOT NULL,
        hits INTEGER NOT NULL,
        header_set INTEGER NOT NULL REFERENCES header_set (id),
        detail BLOB NOT NULL
      );
      CREATE INDEX entry_by_artifact ON entry (artifact, size);
      CREATE INDEX entry_by_name ON entry (name);
      CREATE INDEX entry_by_last_use ON entry (last_used_unix_ms, created_unix_ms);
      CREATE INDEX entry_by_header_set ON entry (header_set);
      CREATE TABLE counter (
        id INTEGER PRIMARY KEY,
        value INTEGER NOT NULL
      );
    )sql",
    // The same request may be loaded under many names and by many users.
    R"sql(
      CREATE TABLE label (
        name TEXT NOT NULL,
        key BLOB NOT NULL REFERENCES entry (key),
        owner INTEGER NOT NULL,
        PRIMARY KEY (name, key, owner)
      ) WITHOUT ROWID;
      INSERT INTO label (name, key, owner) SELECT name, key, owner FROM entry;
      CREATE INDEX label_by_key ON label (key);
      DROP INDEX entry_by_name;
      ALTER TABLE entry DROP COLUMN name;
      ALTER TABLE entry DROP COLUMN owner;
    )sql",
    R"sql(
      CREATE TABLE known_file (
        path TEXT PRIMARY KEY NOT NULL,
        digest BLOB NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        ctime_ns INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        device INTEGER NOT NULL
      ) WITHOUT ROWID;
    )sql",
    // In a table of its own, because no hit needs it.
    R"sql(
      CREATE TABLE build_inputs (
        key BLOB PRIMARY KEY NOT NULL REFERENCES entry (key),
        inputs BLOB NOT NULL
      );
    )sql",
    R"sql(
      CREATE TABLE build_trace (
        key BLOB PRIMARY KEY NOT NULL REFERENCES entry (key),
        trace BLOB NOT NULL
      );
    )sql",
};

absl::Status CheckIntegrity(Database& database) {
  KERNIX_ASSIGN_OR_RETURN(Statement check, database.Prepare("PRAGMA quick_check(1)"));
  KERNIX_ASSIGN_OR_RETURN(const bool row, check.Step());
  if (!row || check.Text(0) != "ok") {
    return absl::DataLossError(StrCat("integrity check: ", row ? check.Text(0) : "no answer"));
  }
  return absl::OkStatus();
}

// After a large transaction, the next one after a checkpoint cuts the write-ahead log.
constexpr char kShortLog[] = "PRAGMA journal_size_limit = 4194304";

constexpr char kAwaitDisk[] = "PRAGMA synchronous = FULL";

// In one transaction: each one waits for the disk.
absl::Status RunMigrations(Database& database, int from, int to) {
  KERNIX_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  for (int version = from; version < to; ++version) {
    KERNIX_RETURN_IF_ERROR(database.Execute(kMigrations[version]));
  }
  KERNIX_RETURN_IF_ERROR(database.Execute(StrCat("PRAGMA user_version = ", to)));
  KERNIX_RETURN_IF_ERROR(transaction.Commit());
  return database.Execute(kAwaitDisk);
}

}  // namespace

int NewestIndexVersion() { return static_cast<int>(std::size(kMigrations)); }

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

absl::Status MigrateIndex(Database& database, int to) {
  KERNIX_RETURN_IF_ERROR(CheckIntegrity(database));
  KERNIX_ASSIGN_OR_RETURN(const int64_t version, database.QueryInt("PRAGMA user_version"));
  if (version > NewestIndexVersion()) {
    return absl::FailedPreconditionError(
        StrCat("its layout is ", version, ", this kernix knows up to ", NewestIndexVersion()));
  }
  return version < to ? RunMigrations(database, static_cast<int>(version), to) : absl::OkStatus();
}

}  // namespace kernix::cache
