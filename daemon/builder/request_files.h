// SPDX-License-Identifier: Apache-2.0
//
// The files that a request brings into an input root, by the names that tools give them.
#pragma once

#include <string>

#include "absl/container/flat_hash_set.h"
#include "daemon/request/request.h"

namespace kernix::build {

// Not thread-safe. The request must outlive it.
class RequestFiles {
 public:
  explicit RequestFiles(const BuildRequest& request) : request_(request) {}

  // Whether a normalised relative path names a header of the request.
  bool HasHeader(const std::string& path) const;

  // Whether a normalised relative path may name a file of a step's input root: a header, a source, or a file in one of
  // kernixd's own folders, in which requests name nothing.
  bool Has(const std::string& path) const;

 private:
  bool HasSource(const std::string& path) const;

  const BuildRequest& request_;
  mutable absl::flat_hash_set<std::string> headers_;  // made on first use
};

}  // namespace kernix::build
