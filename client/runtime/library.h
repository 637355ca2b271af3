// SPDX-License-Identifier: Apache-2.0
//
// Opens artifacts in this process, after a check that its C and C++ runtimes are new enough. Also opens CUDA's
// libraries, which an artifact names without a folder: those of the client's own environment, which JAX uses, too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/paths.h"
#include "common/os/elf_file.h"
#include "common/os/env.h"
#include "kernix/module.h"

namespace kernix {

// The symbol versions that runtime libraries define, such as "GLIBCXX_3.4.30".
struct RuntimeVersions {
  std::string libc_version;                      // "2.36"
  std::map<std::string, std::string> libraries;  // version -> path of the loaded library that defines it
};

// The versions of the libraries that this process has loaded.
RuntimeVersions LoadedRuntimeVersions();

// Returns a LOAD error that names each of `required` that `runtime` lacks, and the version that it has instead. Ignores
// families ("GLIBCXX") without a loaded library, and names without a number; the loader checks those.
absl::Status CheckSymbolVersions(const std::vector<std::string>& required, const RuntimeVersions& runtime);

// The folders that may contain CUDA's shared libraries (cuBLAS, cuFFT, ...), in search order: the wheels in
// `site_packages`, $CUDA_HOME, $CUDA_PATH, /usr/local/cuda. Only existing folders.
std::vector<std::string> CudaLibraryDirectories(Env& env, const GetEnv& get_env,
                                                const std::vector<std::string>& site_packages);

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

// Opens `artifact`, or returns what an earlier call opened for the same digest and instance, even from another path. If
// the system forbids executable memory, loads always share code that is open already. Returns kNotFound if the file is
// gone, also if it disappears during the call (it was evicted: load again). Otherwise returns LOAD errors: a runtime of
// this process is too old, a library that the artifact needs is missing, or the file is not a library. Thread-safe.
absl::StatusOr<OpenArtifact> OpenLibrary(const Artifact& artifact, const LibraryDirectories& directories);

}  // namespace kernix
