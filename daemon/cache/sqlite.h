// SPDX-License-Identifier: Apache-2.0
//
// A thin layer over SQLite: owning handles, absl::Status, and no SQL text built from data.
//
// Codes: kResourceExhausted (no space), kDataLoss (not a database, or a damaged one), kPermissionDenied (cannot be
// opened or written), kUnavailable (locked by another process), otherwise kInternal. Messages name the file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kernix::cache {

// A value of the type BLOB. Strings are TEXT.
struct Blob {
  std::string_view bytes;
};

// A prepared statement that can run many times. Must not outlive its database. Not thread-safe.
class Statement {
 public:
  Statement() = default;

  // Binds all parameters, in their order; strings are copied. An error appears when the statement runs.
  template <typename... Values>
  Statement& Bind(const Values&... values) {
    int index = 0;
    (BindAt(++index, values), ...);
    return *this;
  }

  // Runs to the end. For statements whose rows do not matter.
  absl::Status Run() {
    return ForEachRow([](const Statement&) {});
  }

  // Calls `read` with the statement at each row. If `read` returns a status, an error ends it.
  template <typename Read>
  absl::Status ForEachRow(const Read& read) {
    const absl::Cleanup reset = [this] { Reset(); };
    while (true) {
      KERNIX_ASSIGN_OR_RETURN(const bool row, Step());
      if (!row) return absl::OkStatus();
      if constexpr (std::is_void_v<std::invoke_result_t<Read, const Statement&>>) {
        read(*this);
      } else {
        KERNIX_RETURN_IF_ERROR(read(*this));
      }
    }
  }

  // Whether there is a row.
  absl::StatusOr<bool> HasRow();

  // Values of the current row; columns are counted from 0. The views are valid until the next row.
  int64_t Int(int column) const;
  std::string_view Text(int column) const;
  std::string_view Bytes(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  template <typename Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number>
  void BindAt(int index, Number value) { BindAt(index, static_cast<int64_t>(value)); }
  void BindAt(int index, int64_t value);
  void BindAt(int index, std::string_view value);
  void BindAt(int index, Blob value);
  void BindAt(int index, const Digest& value);
  void Note(int result);
  // True: there is a row to read. False: done.
  absl::StatusOr<bool> Step();
  // Prepares for new parameters. Also ends the read transaction of a half-read SELECT.
  void Reset();

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  absl::Status error_;  // of preparing or binding
};

// One connection. Not thread-safe: the owner must use a lock.
class Database {
 public:
  Database() = default;

  // Opens or creates the file. Waits up to `busy_timeout_ms` for other processes and connections.
  static absl::StatusOr<Database> Open(const std::string& path, int busy_timeout_ms);

  // Runs statements without parameters and rows; several may be separated by ";".
  absl::Status Execute(const std::string& sql);

  // The statement `sql`, which is prepared once and kept. An error appears when it runs.
  Statement& Prepared(std::string_view sql);

  // The single integer that `sql` returns.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);

  // The number of rows that the last INSERT, UPDATE or DELETE changed.
  uint64_t Changes() const;
  // The number of rows that this connection has changed.
  int64_t AllChanges() const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::map<std::string, Statement, std::less<>> prepared_;  // by SQL text; destroyed before the connection
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
