// SPDX-License-Identifier: Apache-2.0
//
// A thin layer over SQLite: owning handles, absl::Status, and no SQL text built from data.
//
// Codes: kResourceExhausted (no space), kDataLoss (not a database, or a damaged one), kPermissionDenied (cannot be
// opened or written), kUnavailable (locked by another process), kInternal for the rest. Messages name the file.
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

// One prepared statement, usable again and again. Bind the parameters (counted from 1), Step() until it says false,
// Reset(). Errors of the Bind calls show up at the next Step(). Must not outlive its database. Not thread-safe.
class Statement {
 public:
  Statement() = default;

  Statement& BindInt(int index, int64_t value);
  Statement& BindText(int index, std::string_view value);  // copied
  Statement& BindBlob(int index, std::string_view value);  // copied

  // True: there is a row to look at. False: done.
  absl::StatusOr<bool> Step();

  // Runs to the end and resets, for statements whose rows do not matter.
  absl::Status Run();

  // Ready for new parameters. Also gives up the read transaction that a half-read SELECT holds.
  void Reset();

  // Of the current row, counted from 0. The views live until the next Step() or Reset().
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

// One connection. Not thread-safe: its owner has a lock.
class Database {
 public:
  Database() = default;

  // Opens or creates the file. Other processes and connections are waited for up to `busy_timeout_ms`.
  static absl::StatusOr<Database> Open(const std::string& path, int busy_timeout_ms);

  // Statements without parameters and rows; several may be separated by ";".
  absl::Status Execute(const std::string& sql);

  absl::StatusOr<Statement> Prepare(std::string_view sql);

  // The single integer that `sql` gives.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);

  // How many rows the last INSERT, UPDATE or DELETE changed.
  int64_t Changes() const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

// BEGIN IMMEDIATE ... COMMIT; rolls back when Commit() was not reached or failed.
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
