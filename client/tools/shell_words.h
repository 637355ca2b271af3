// SPDX-License-Identifier: Apache-2.0
//
// Splitting text as a shell splits a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix {

// Words between white space, with '...', "..." and backslashes as in sh. Nothing is expanded. kInvalidArgument when a
// quote does not end.
absl::StatusOr<std::vector<std::string>> SplitShellWords(std::string_view text);

}  // namespace kernix
