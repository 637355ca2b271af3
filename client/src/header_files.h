// SPDX-License-Identifier: Apache-2.0
//
// What this process knows of the content of header files.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/src/fork_safety.h"
#include "client/src/include_scan.h"
#include "daemon/base/digest.h"
#include "daemon/base/env.h"

namespace kernix {

struct HeaderFile {
  Digest digest;
  uint64_t size = 0;
  ScannedText text;
};

using HeaderFilePtr = std::shared_ptr<const HeaderFile>;

// Remembers files until their size, times or inode change. Thread-safe; files are read outside the lock.
class HeaderFiles {
 public:
  explicit HeaderFiles(Env& env) : env_(env) {}

  // Those of this process. Never destroyed.
  static HeaderFiles& OfProcess();

  // Null when `path` is no regular file, or there is none. The status of Env::ReadFile() when it cannot be read.
  absl::StatusOr<HeaderFilePtr> Get(const std::string& path);

 private:
  struct Known {
    FileInfo info;
    HeaderFilePtr file;
  };

  HeaderFilePtr Find(const std::string& path, const FileInfo& info);

  Env& env_;
  ForkSafeMutex mutex_;
  absl::flat_hash_map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
