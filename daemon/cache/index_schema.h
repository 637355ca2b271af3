// SPDX-License-Identifier: Apache-2.0
//
// The tables of the index and how older layouts become the newest.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "daemon/cache/sqlite.h"

namespace kernix::cache {

// The layout that this build reads and writes: PRAGMA user_version of the file.
int NewestIndexVersion();

// A connection with the settings that the promises of Index need: WAL, and a commit that is on the disk when it
// returns.
absl::StatusOr<Database> OpenIndexConnection(const std::string& path);

// Checks the file and brings it to the newest layout, each step in a transaction of its own. kDataLoss when the file is
// damaged, kFailedPrecondition when its layout is newer than this build.
// `to` is for tests of a migration: an older layout than the newest.
absl::Status MigrateIndex(Database& database, int to = NewestIndexVersion());

}  // namespace kernix::cache
