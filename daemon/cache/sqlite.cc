// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/sqlite.h"

#include <sqlite3.h>

#include <cerrno>
#include <optional>

#include "common/base/strings.h"

namespace kernix::cache {
namespace {

absl::StatusCode CodeOf(int result, int system_error) {
  switch (result & 0xff) {
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_IOERR:
      return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG
                 ? absl::StatusCode::kResourceExhausted
                 : absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status ErrorOf(sqlite3* handle, int result) {
  const char* file = handle == nullptr ? nullptr : sqlite3_db_filename(handle, "main");
  return absl::Status(CodeOf(result, handle == nullptr ? 0 : sqlite3_system_errno(handle)),
                      StrCat(file == nullptr ? "index" : file, ": ",
                             handle == nullptr ? sqlite3_errstr(result) : sqlite3_errmsg(handle)));
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::BindAt(int index, int64_t value) {
  if (error_.ok()) Note(sqlite3_bind_int64(statement_.get(), index, value));
}

// Of an empty string, a null pointer would store NULL.
void Statement::BindAt(int index, std::string_view value) {
  if (!error_.ok()) return;
  Note(sqlite3_bind_text64(statement_.get(), index, value.empty() ? "" : value.data(), value.size(), SQLITE_TRANSIENT,
                           SQLITE_UTF8));
}

void Statement::BindAt(int index, Blob value) {
  if (!error_.ok()) return;
  const std::string_view bytes = value.bytes;
  Note(sqlite3_bind_blob64(statement_.get(), index, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_TRANSIENT));
}

void Statement::BindAt(int index, const Digest& value) {
  BindAt(index, Blob{{reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()}});
}

void Statement::Note(int result) {
  if (result != SQLITE_OK) error_ = ErrorOf(sqlite3_db_handle(statement_.get()), result);
}

absl::StatusOr<bool> Statement::Step() {
  KERNIX_RETURN_IF_ERROR(error_);
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return ErrorOf(sqlite3_db_handle(statement_.get()), result);
}

absl::StatusOr<bool> Statement::HasRow() {
  const absl::Cleanup reset = [this] { Reset(); };
  return Step();
}

void Statement::Reset() {
  if (statement_ == nullptr) return;
  error_ = absl::OkStatus();
  // Its result repeats the error of the last step, which has already been reported.
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::string_view Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Statement::Bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

absl::StatusOr<Database> Database::Open(const std::string& path, int busy_timeout_ms) {
  sqlite3* handle = nullptr;
  const int result =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.handle_.reset(handle);
  if (result != SQLITE_OK) return ErrorOf(handle, result);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, busy_timeout_ms);
  return database;
}

absl::Status Database::Execute(const std::string& sql) {
  const int result = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : ErrorOf(handle_.get(), result);
}

Statement& Database::Prepared(std::string_view sql) {
  auto found = prepared_.find(sql);
  if (found == prepared_.end()) found = prepared_.emplace(sql, Statement()).first;
  Statement& statement = found->second;
  if (statement.statement_ != nullptr) return statement;
  sqlite3_stmt* raw = nullptr;
  const int result = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  statement.statement_.reset(raw);
  statement.error_ = result == SQLITE_OK ? absl::OkStatus() : ErrorOf(handle_.get(), result);
  return statement;
}

absl::StatusOr<int64_t> Database::QueryInt(std::string_view sql) {
  std::optional<int64_t> value;
  KERNIX_RETURN_IF_ERROR(Prepared(sql).ForEachRow([&](const Statement& row) { value = row.Int(0); }));
  if (!value) return absl::NotFoundError(StrCat("no row: ", sql));
  return *value;
}

int64_t Database::AllChanges() const { return sqlite3_total_changes64(handle_.get()); }

uint64_t Database::Changes() const { return static_cast<uint64_t>(sqlite3_changes64(handle_.get())); }

absl::StatusOr<Transaction> Transaction::Begin(Database& database) {
  KERNIX_RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  return Transaction(&database);
}

Transaction::~Transaction() {
  // Fails if SQLite has already rolled back, as it does on a full disk.
  if (database_ != nullptr) database_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  KERNIX_RETURN_IF_ERROR(database_->Execute("COMMIT"));
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace kernix::cache
