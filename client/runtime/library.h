// SPDX-License-Identifier: Apache-2.0
//
// Opens artifacts in this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/elf_file.h"
#include "kernix/module.h"

namespace kernix {

struct Artifact {
  std::string path;
  Digest digest;
  std::vector<std::string> required_symbol_versions;
  std::string instance = {};  // instances of different names share no static variables
  bool begins_anew = false;   // static variables begin with their first values, also if the instance is open already
};

// Code that is open. Stays open until the process ends. Immutable, thread-safe.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Returns a LOAD error if the library has no such symbol.
  absl::StatusOr<Handler> FindHandler(const std::string& symbol) const;
  // The form of that handler which takes the module's name. Null if the library has none.
  NamedHandler FindNamedHandler(const std::string& symbol) const;

 private:
  void* handle_;
};

// Artifacts of one instance whose texts alone differ share a library.
struct OpenArtifact {
  std::shared_ptr<const Library> library;
  std::shared_ptr<const ElfFile> file;
};

// The folders to search first for libraries that an artifact needs. Called only if the artifact needs libraries.
using LibraryDirectories = std::function<std::vector<std::string>()>;

// Opens `artifact`, or returns what an earlier call opened for the same digest and instance, even from another path.
// Where the system gives no memory that can be run, code that is open already is shared in any case. Returns kNotFound
// if the file is gone, also if it disappears during the call (it was evicted: load again). Otherwise returns LOAD
// errors: a runtime of this process is too old, a library that the artifact needs is missing, or the file is not a
// library. Thread-safe.
absl::StatusOr<OpenArtifact> OpenLibrary(const Artifact& artifact, const LibraryDirectories& directories);

}  // namespace kernix
