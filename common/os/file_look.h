// SPDX-License-Identifier: Apache-2.0
//
// One look at files, for many who ask at the same time.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix {

// Finds out whether files have changed, and looks at each file once, however many questions name it. What it says was
// true at some time after its construction, so it may answer everybody who asked before that, and nobody who asks
// later. Not thread-safe; make a new one for each round.
class FileLook {
 public:
  using Files = std::shared_ptr<const std::vector<WatchedFile>>;

  explicit FileLook(Env& env) : env_(env) {}
  FileLook(const FileLook&) = delete;
  FileLook& operator=(const FileLook&) = delete;

  // Whether all `files` have their recorded state, links followed.
  bool Unchanged(const Files& files);

 private:
  bool IsAsRecorded(const WatchedFile& file);

  Env& env_;
  // The lists, which stay alive as long as their addresses stand for them, and what was found out.
  absl::flat_hash_map<Files, bool> lists_;
  absl::flat_hash_map<std::string_view, std::optional<FileIdentity>> found_;  // by a path in one of the lists
};

}  // namespace kernix
