// SPDX-License-Identifier: Apache-2.0
//
// Whether the C and C++ runtimes of this process are new enough for an artifact.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace kernix {

// The symbol versions that a runtime library defines, "GLIBCXX_3.4.30" and so on.
struct RuntimeVersions {
  std::string libc_version;                      // "2.36"
  std::map<std::string, std::string> libraries;  // version -> path of the loaded library that defines it
};

// Of the libraries that this process has loaded.
RuntimeVersions LoadedRuntimeVersions();

// A LOAD error that names each of `required` that `runtime` lacks, with what it has. A family ("GLIBCXX") of which no
// library is loaded, and a name without a number, are left to the loader.
absl::Status CheckSymbolVersions(const std::vector<std::string>& required, const RuntimeVersions& runtime);

}  // namespace kernix
