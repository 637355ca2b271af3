// SPDX-License-Identifier: Apache-2.0
//
// This process's memory of the content of header files.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/headers/header_file.h"
#include "client/headers/header_table.h"
#include "common/os/env.h"
#include "common/os/fork_safety.h"

namespace kernix {

// Remembers files until their identity changes. Thread-safe; reads files outside the lock.
class HeaderFiles {
 public:
  explicit HeaderFiles(Env& env) : env_(env) {}

  // The instance of this process. Never destroyed.
  static HeaderFiles& OfProcess();

  // Returns null if `path` does not exist or is not a regular file, and the status of Env::ReadFile() if it cannot be
  // read. If this process does not know the file, looks in `table`, and notes the file there.
  absl::StatusOr<HeaderFilePtr> Get(const std::string& path, HeaderTable& table);

 private:
  struct Known {
    FileIdentity identity;
    HeaderFilePtr file;
  };

  HeaderFilePtr Find(const std::string& path, const FileIdentity& identity);
  void Remember(const std::string& path, const FileIdentity& identity, const HeaderFilePtr& file);

  Env& env_;
  ForkSafeMutex mutex_;
  absl::flat_hash_map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
