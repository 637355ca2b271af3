// SPDX-License-Identifier: Apache-2.0
//
// Stores of layout 1. All lay in the store's own folder, so that the group, which has to get at the artifacts, got at
// the index and its locks as well:
//
//   <directory>/blobs/abcd..., index.sqlite, lock, owner, tmp/
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/cache/store_folder.h"

namespace kernix::cache {

struct OldStorePaths {
  explicit OldStorePaths(const std::string& directory);

  std::string lock, owner, blobs, index, scratch;
};

// Brings artifacts and index to where `paths` has them. For who holds the locks of both layouts, and writes the number
// of the new one when this has returned OK. After a crash or an error it can be done again, as long as the number is
// the old one.
//
// Artifacts keep their files, which clients may have open. The index becomes new files: on the old ones others may hold
// locks, and read what is written later.
absl::Status TakeOverOldStore(Env& env, const OldStorePaths& old, const StorePaths& paths);

// Removes what a take-over has left, or did not come to remove. For a store that has the new number.
absl::Status RemoveOldStore(Env& env, const OldStorePaths& old);

}  // namespace kernix::cache
