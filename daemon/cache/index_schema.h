// SPDX-License-Identifier: Apache-2.0
//
// The tables of the index.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "daemon/cache/sqlite.h"

namespace kernix::cache {

// The error for a store whose `what` has another number than that of this kernix.
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

}  // namespace kernix::cache
