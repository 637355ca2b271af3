// SPDX-License-Identifier: Apache-2.0
//
// A thin layer over SQLite: owning handles, absl::Status, and no SQL text built from data.
//
// Codes: kResourceExhausted (no space), kDataLoss (not a database, or a damaged one), kPermissionDenied (cannot be
// opened or written), kUnavailable (locked by another process), otherwise kInternal. Messages name the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kernix::cache {

// A reusable prepared statement. Bind the parameters (counted from 1), call Step() until it returns false, then
// Reset(). Errors of the Bind calls appear at the next Step(). Must not outlive its database. Not thread-safe.
class Statement {
 public:
  Statement() = default;

  Statement& BindInt(int index, int64_t value);
  Statement& BindText(int index, std::string_view value);  // copied
  Statement& BindBlob(int index, std::string_view value);  // copied

  // True: there is a row to read. False: done.
  absl::StatusOr<bool> Step();

  // Runs to the end and resets. For statements whose rows do not matter.
  absl::Status Run();

  // Prepares for new parameters. Also ends the read transaction of a half-read SELECT.
  void Reset();

  // Values of the current row; columns are counted from 0. The views are valid until the next Step() or Reset().
  int64_t Int(int column) const;
  std::string_view Text(int column) const;
  std::string_view Blob(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = 0;
};

// Resets a statement at the end of a scope.
class ScopedReset {
 public:
  explicit ScopedReset(Statement& statement) : statement_(statement) {}
  ~ScopedReset() { statement_.Reset(); }
  ScopedReset(const ScopedReset&) = delete;
  ScopedReset& operator=(const ScopedReset&) = delete;

 private:
  Statement& statement_;
};

// One connection. Not thread-safe: the owner must use a lock.
class Database {
 public:
  Database() = default;

  // Opens or creates the file. Waits up to `busy_timeout_ms` for other processes and connections.
  static absl::StatusOr<Database> Open(const std::string& path, int busy_timeout_ms);

  // Runs statements without parameters and rows; several may be separated by ";".
  absl::Status Execute(const std::string& sql);

  absl::StatusOr<Statement> Prepare(std::string_view sql);

  // The single integer that `sql` returns.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);

  // The number of rows that the last INSERT, UPDATE or DELETE changed.
  int64_t Changes() const;
  // The number of rows that this connection has changed.
  int64_t AllChanges() const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

// BEGIN IMMEDIATE ... COMMIT. Rolls back if Commit() was not called or failed.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(other.database_) { other.database_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace kernix::cache
