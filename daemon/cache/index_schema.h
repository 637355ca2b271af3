// SPDX-License-Identifier: Apache-2.0
//
// The tables of the index, and migrations from older layouts to the newest.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "daemon/cache/sqlite.h"

namespace kernix::cache {

// The layout that this build reads and writes: PRAGMA user_version of the file.
int NewestIndexVersion();

// Opens a connection with the settings that Index's promises need: WAL, and commits that are on disk when they return.
// In a new file this holds once MigrateIndex() has made the tables, which are not awaited: they hold nothing yet that a
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

// Checks the file and migrates it to the newest layout, in one transaction. kDataLoss if the file is
// damaged, kFailedPrecondition if its layout is newer than this build. Tests of a migration pass an older layout as
// `to`.
absl::Status MigrateIndex(Database& database, int to = NewestIndexVersion());

}  // namespace kernix::cache
