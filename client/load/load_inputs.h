// SPDX-License-Identifier: Apache-2.0
//
// What a load depends on in the file system, besides its source texts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix {

// A file or folder as it was; without an identity when it was not there.
struct LoadInput {
  std::string path;
  std::optional<FileIdentity> identity;
};

// Whether all of `inputs` are as they were.
bool Unchanged(Env& env, const std::vector<LoadInput>& inputs);

// The files and folders of one load. Made before the load begins. Not thread-safe.
class LoadInputs {
 public:
  // `include_paths`: the folders that the user named, whether they are there or not. Absolute.
  LoadInputs(Env& env, const std::vector<std::string>& include_paths);

  // The folders in which headers are looked up, in search order, then those of libraries; and the headers, objects and
  // libraries that the load can reach in them. Absolute.
  void Add(const std::vector<std::string>& folders, const std::vector<std::string>& files);

  // All of it as it is now. nullopt when a change since the load began may not show in it.
  std::optional<std::vector<LoadInput>> Look() const;

 private:
  Env& env_;
  const int64_t begun_unix_ms_;
  std::set<std::string> found_;     // has to be there
  std::set<std::string> possible_;  // where something that appears would change the load
};

}  // namespace kernix
