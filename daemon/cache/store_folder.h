// SPDX-License-Identifier: Apache-2.0
//
// The folder of a store: made, guarded, owned by one process, and of the layout that this build has. See cache.h.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::cache {

// What a user is told when `status` kept the store in `directory` from working: RESOURCE, with what to do. OK stays OK.
absl::Status StoreError(const std::string& directory, const absl::Status& status);

struct StorePaths {
  explicit StorePaths(const std::string& directory);

  std::string directory, version, blobs, private_directory, lock, owner, index, scratch;
};

// What a blob's file is called after its digest: debuggers and profilers want libraries to have it.
inline constexpr char kBlobSuffix[] = ".so";

// Makes the folder, refuses one that is somebody else's or that others may write to, takes its lock (given up when the
// result goes), checks or writes the layout's number, takes over a store of an older layout, and empties the scratch
// folder.
absl::StatusOr<std::unique_ptr<FileLock>> ClaimStore(Env& env, const StorePaths& paths);

// Renames the index's files to "index.sqlite.damaged...", over an older such set.
absl::Status MoveIndexAside(Env& env, const StorePaths& paths);

}  // namespace kernix::cache
