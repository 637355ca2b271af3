// SPDX-License-Identifier: Apache-2.0
//
// Creates, guards and locks a store's folder, and brings it to the layout of this build. See cache.h.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::cache {

// The error for the user if `status` kept the store in `directory` from working: RESOURCE, with what to do. OK stays
// OK.
absl::Status StoreError(const std::string& directory, const absl::Status& status);

struct StorePaths {
  explicit StorePaths(const std::string& directory);

  std::string directory, version, blobs, private_directory, lock, index, steps, toolchains, scratch;
};

// The suffix of a blob's file after its digest: debuggers and profilers expect it for libraries.
inline constexpr char kBlobSuffix[] = ".so";

// Creates the folder, refuses a folder that belongs to another user or that others may write to, takes its lock
// (released when the result is destroyed), checks or writes the layout's number, converts a store of an older layout,
// and empties the scratch folder. `socket`: see CacheOptions.
absl::StatusOr<std::unique_ptr<FileLock>> ClaimStore(Env& env, const StorePaths& paths, const std::string& socket = "");

// Renames the index's files to "index.sqlite.damaged...", replacing an older such set.
absl::Status MoveIndexAside(Env& env, const StorePaths& paths);

}  // namespace kernix::cache
