// SPDX-License-Identifier: Apache-2.0
//
// Checks whether the C and C++ runtimes of this process are new enough for an artifact.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

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

}  // namespace kernix
