// SPDX-License-Identifier: Apache-2.0
//
// Content digests of files that rarely change (compilers, system headers).
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/base/digest.h"
#include "daemon/base/env.h"
#include "daemon/base/mutex.h"

namespace kernix::toolchain {

// Whether what stat(2) says leaves no room for another content.
bool SameContent(const FileInfo& a, const FileInfo& b);

// Remembers a file's digest until its size, times or inode change. Thread-safe; files are read outside the lock.
class FileDigests {
 public:
  explicit FileDigests(Env& env) : env_(env) {}

  // The SHA-256 of the file's content. The status of Env::Stat() or Env::ReadFile() on error.
  absl::StatusOr<Digest> Get(const std::string& path);

 private:
  struct Known {
    FileInfo info;
    Digest digest;
  };
  Env& env_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::toolchain
