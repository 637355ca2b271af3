// SPDX-License-Identifier: Apache-2.0
//
// Opening an artifact in this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "kernix/module.h"

namespace kernix {

struct Artifact {
  std::string path;
  Digest digest;
  std::vector<std::string> required_symbol_versions;
};

// An open artifact. Stays open for the life of the process. Immutable, thread-safe.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // A LOAD error when the library has no such symbol.
  absl::StatusOr<Handler> FindHandler(const std::string& symbol) const;

 private:
  void* handle_;
};

// Where to look first for libraries that an artifact needs. Asked only when it needs any.
using LibraryDirectories = std::function<std::vector<std::string>()>;

// Opens `artifact`, or gives the library that an earlier call opened for the same digest, from whatever path. kNotFound
// when the file is gone, also while it is being opened (it was evicted: load again); else LOAD errors: a runtime of
// this process is too old, a library that it needs is missing, it is no library at all. Thread-safe.
absl::StatusOr<std::shared_ptr<const Library>> OpenLibrary(const Artifact& artifact,
                                                           const LibraryDirectories& directories);

}  // namespace kernix
