// SPDX-License-Identifier: Apache-2.0
//
// Creates, guards and locks a store's folder. See cache.h.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "common/os/files_in_place.h"

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
// (released when the result is destroyed), checks or writes the layout's number, makes what is missing of the store,
// and empties the scratch folder. A process that is about to end may still hold the lock: waits two seconds for it.
// `socket`: see CacheOptions.
absl::StatusOr<std::unique_ptr<FileLock>> ClaimStore(Env& env, const StorePaths& paths, const std::string& socket = "");

// What a store consists of while a process uses it. Call it once the store is claimed and its index open.
std::unique_ptr<FilesInPlace> FilesOfStore(Env& env, const StorePaths& paths);

// Renames the index's files to "index.sqlite.damaged...", replacing an older such set.
absl::Status MoveIndexAside(Env& env, const StorePaths& paths);

}  // namespace kernix::cache
