// SPDX-License-Identifier: Apache-2.0
//
// The files that make up a tool, and the tool's identity, which covers their content but not their place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "daemon/toolchain/file_digests.h"

namespace kernix::toolchain {

class Parts {
 public:
  // `role` is the file's name in the identity, independent of the tool's place.
  void Add(std::string role, std::string path) { parts_.push_back({std::move(role), std::move(path)}); }

  // Adds a part that not every tool has.
  void AddIfThere(std::string role, std::optional<std::string> path) {
    if (path) Add(std::move(role), *std::move(path));
  }

  // The present states of all parts that are there.
  std::vector<WatchedFile> States(Env& env) const;

  // A digest of roles and contents, in the order of Add(). Adds every part to `watched`. TOOLCHAIN if a file cannot be
  // read.
  absl::StatusOr<Digest> Identity(FileDigests& digests, std::string_view domain,
                                  std::vector<WatchedFile>& watched) const;

 private:
  struct Part {
    std::string role;
    std::string path;
  };
  std::vector<Part> parts_;
};

}  // namespace kernix::toolchain
