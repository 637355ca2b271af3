// SPDX-License-Identifier: Apache-2.0
//
// The tables of the index, and the rows in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/cache/entry.h"
#include "daemon/cache/sqlite.h"

namespace kernix::cache {

// The error for a store whose `what` has another number than this kernix's.
absl::Status MadeByAnother(std::string_view what, int64_t number, int64_t ours);

// Opens a connection with the settings that Index's promises need: WAL, and commits that are on disk when they return.
// In a new file this holds once PrepareIndex() has made the tables, which are not awaited: they hold nothing yet that a
// power failure could take, and what it leaves of them is empty or found to be damaged.
absl::StatusOr<Database> OpenIndexConnection(const std::string& path);

// During its lifetime, which must not begin or end within a transaction, commits do not await the disk. A power failure
// may take them, but damages nothing. `database` must outlive it.
class DiskNotAwaited {
 public:
  explicit DiskNotAwaited(Database& database);
  ~DiskNotAwaited();
  DiskNotAwaited(const DiskNotAwaited&) = delete;
  DiskNotAwaited& operator=(const DiskNotAwaited&) = delete;

 private:
  Database& database_;
};

// Checks the file, and makes the tables in a new one. kDataLoss if the file is damaged, kFailedPrecondition if its
// tables are those of another kernix.
absl::Status PrepareIndex(Database& database);

// kDataLoss if the file is damaged. Needs no lock: a connection of its own reads it, as it is now.
absl::Status CheckIndexFile(const std::string& path);

// Writes a copy of the file, as it is now, to `to`, where nothing may be. In the same way.
absl::Status CopyIndexFile(const std::string& path, const std::string& to);

// Converts an Entry to and from the index's columns.

// The blob columns. The same content gives the same bytes.
std::string EncodeHeaders(const Entry& entry);
std::string EncodeInputs(const Entry& entry);

// The columns that DecodeRow() reads, for a SELECT from `entry`.
inline constexpr std::string_view kEntryColumns = "entry.key, artifact, size, created_unix_ms, detail";
inline constexpr int kEntryColumnCount = 5;

// The current row of such a SELECT, without the toolchain headers. kDataLoss if it is malformed.
absl::StatusOr<Entry> DecodeRow(const Statement& row);

// Adds the toolchain headers from the bytes of EncodeHeaders(). kDataLoss if they are malformed.
absl::Status DecodeHeaders(std::string_view bytes, Entry& entry);

// From the bytes of EncodeInputs(). kDataLoss if they are malformed.
absl::StatusOr<std::vector<BuildInput>> DecodeInputs(std::string_view bytes);

}  // namespace kernix::cache
