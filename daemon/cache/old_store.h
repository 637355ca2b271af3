// SPDX-License-Identifier: Apache-2.0
//
// Stores of layout 1. Everything was in the store's own folder, so the group, which must be able to open the artifacts,
// could also open the index and its locks:
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

// Moves artifacts and index to the places in `paths`. The caller must hold the locks of both layouts, and must write
// the number of the new layout once this has returned OK. After a crash or an error, the call can be repeated as long
// as the number is the old one.
//
// Artifacts keep their files, because clients may have them open. The index gets new files, because other processes may
// hold locks on the old ones and could read what is written later.
absl::Status TakeOverOldStore(Env& env, const OldStorePaths& old, const StorePaths& paths);

// Removes what a conversion has left behind. For a store that has the new number.
absl::Status RemoveOldStore(Env& env, const OldStorePaths& old);

}  // namespace kernix::cache
