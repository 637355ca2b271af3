// SPDX-License-Identifier: Apache-2.0
//
// The files and folders that a load depends on, besides its source texts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix {

// The files and folders of one load. Create it before the load begins. Not thread-safe.
class LoadInputs {
 public:
  explicit LoadInputs(Env& env) : env_(env), begun_unix_ms_(env.UnixMillis()) {}

  // `files`: the headers, objects and libraries that the load can reach. `searched`: the folders in which one of them
  // was looked for; they need not exist. A file that appears in such a folder changes the folder's times. It may hide a
  // file that was found, or be one that was not. All paths are absolute.
  void Add(const std::vector<std::string>& files, const std::set<std::string>& searched);

  // All of them.
  std::vector<std::string> Paths() const;

  // The current state of all of them. Returns nullopt if a file is gone, or if that state might not show a change since
  // the load began.
  std::optional<std::vector<WatchedFile>> Look() const;

 private:
  Env& env_;
  const int64_t begun_unix_ms_;
  std::set<std::string> files_;
  std::set<std::string> searched_;
};

}  // namespace kernix
