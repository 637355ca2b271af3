// SPDX-License-Identifier: Apache-2.0
//
// The user's compiler flags, sorted by what kernix does with them: a folder of headers goes to the daemon by content,
// not by path.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/load.h"

namespace kernix {

struct SortedFlags {
  std::vector<std::string> compile;               // what is left, in order
  std::vector<std::string> link;                  // -L, -l, -Wl, and -Xlinker
  std::vector<std::string> include_paths;         // -I (and -iquote)
  std::vector<std::string> system_include_paths;  // -isystem: searched after all -I
  std::vector<std::string> last_include_paths;    // -idirafter
  std::string host_compiler;                      // nvcc's -ccbin
};

// INVALID_REQUEST when a flag lacks its value. Flags that nobody should pass are the daemon's business.
absl::StatusOr<SortedFlags> SortFlags(Language language, const std::vector<std::string>& flags);

}  // namespace kernix
