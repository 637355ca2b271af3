// SPDX-License-Identifier: Apache-2.0
//
// What this process knows of the content of header files.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/headers/header_file.h"
#include "client/headers/header_table.h"
#include "common/os/env.h"
#include "common/os/fork_safety.h"

namespace kernix {

// Remembers files until their identity changes. Thread-safe; files are read outside the lock.
class HeaderFiles {
 public:
  explicit HeaderFiles(Env& env) : env_(env) {}

  // Those of this process. Never destroyed.
  static HeaderFiles& OfProcess();

  // Null when `path` is no regular file, or there is none. The status of Env::ReadFile() when it cannot be read. What
  // this process does not know is looked for in `table`, and told to it.
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
