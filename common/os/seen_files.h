// SPDX-License-Identifier: Apache-2.0
//
// Whether to load again because files have changed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix {

// What the latest load has seen of the files and folders that it depends on. Not thread-safe.
class SeenFiles {
 public:
  explicit SeenFiles(Env& env) : env_(env) {}

  // Looks at `paths`. Returns whether one of them, or the list itself, is not as the latest load has seen it, so that a
  // load may give something else. True before the first load.
  bool Changed(const std::vector<std::string>& paths);

  // Notes what a load has seen that has begun after Changed() and has ended now. It depends on `paths`, of which it may
  // have found some. What might have changed while it ran counts as changed.
  void NoteLoad(const std::vector<std::string>& paths);

 private:
  using States = std::map<std::string, std::optional<FileIdentity>>;

  States Look(const std::vector<std::string>& paths) const;

  Env& env_;
  States before_;  // when Changed() looked
  int64_t begun_unix_ms_ = 0;
  std::optional<States> seen_;
};

}  // namespace kernix
