// SPDX-License-Identifier: Apache-2.0
//
// Notices that files of a running process were removed, or exchanged for others of their names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix {

// Knows files and folders by their names, and which they were. Thread-safe once all are added.
class FilesInPlace {
 public:
  explicit FilesInPlace(Env& env) : env_(env) {}

  // Notes what `path` leads to now. What is not there is not missed later either.
  void Add(const std::string& path);
  // The same for a file that may have another name yet.
  void Add(const std::string& path, const FileId& id) { files_[path] = id; }

  // The first name that leads to nothing now, or to something else; empty: all are in place. Looks at each of them.
  std::string FirstLost() const;

  std::vector<std::string> Names() const;

 private:
  Env& env_;
  std::map<std::string, FileId> files_;
};

}  // namespace kernix
