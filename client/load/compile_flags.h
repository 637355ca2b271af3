// SPDX-License-Identifier: Apache-2.0
//
// Sorts the user's compiler flags by how kernix handles them. For example, the client sends the content of header
// folders to the daemon, not their paths.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/load.h"

namespace kernix {

struct SortedFlags {
  std::vector<std::string> compile;               // the remaining flags, in order
  std::vector<std::string> link;                  // -L, -l, -Wl, and -Xlinker
  std::vector<std::string> include_paths;         // -I (and -iquote)
  std::vector<std::string> system_include_paths;  // -isystem: searched after all -I
  std::vector<std::string> last_include_paths;    // -idirafter
  std::string host_compiler;                      // nvcc's -ccbin
};

// Returns INVALID_REQUEST if a flag lacks its value, or holds a second flag. The daemon checks whether a flag is
// allowed.
absl::StatusOr<SortedFlags> SortFlags(Language language, const std::vector<std::string>& flags);

// Whether one of `flags` asks for warnings: -Wall, -Xcompiler=-Wextra.
bool AsksForWarnings(const std::vector<std::string>& flags);

}  // namespace kernix
