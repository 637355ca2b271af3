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

// The recorded state of a file or folder. It has no identity if the file did not exist.
struct LoadInput {
  std::string path;
  std::optional<FileIdentity> identity;
};

// Whether all `inputs` still have their recorded state.
bool Unchanged(Env& env, const std::vector<LoadInput>& inputs);

// The files and folders of one load. Create it before the load begins. Not thread-safe.
class LoadInputs {
 public:
  // `include_paths` are the folders that the user named, as absolute paths. They need not exist.
  LoadInputs(Env& env, const std::vector<std::string>& include_paths);

  // `folders`: the folders in which headers are looked up, in search order, then those of libraries. `files`: the
  // headers, objects and libraries that the load can reach in them. All paths are absolute.
  void Add(const std::vector<std::string>& folders, const std::vector<std::string>& files);

  // The current state of all of them. Returns nullopt if that state might not show a change since the load began.
  std::optional<std::vector<LoadInput>> Look() const;

 private:
  Env& env_;
  const int64_t begun_unix_ms_;
  std::set<std::string> found_;     // must exist
  std::set<std::string> possible_;  // a file that appears here would change the load
};

}  // namespace kernix
