// SPDX-License-Identifier: Apache-2.0
//
// Splits text like a shell splits a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix {

// Splits at white space; '...', "..." and backslashes work as in sh. Expands nothing. Returns kInvalidArgument if a
// quote is not closed.
absl::StatusOr<std::vector<std::string>> SplitShellWords(std::string_view text);

}  // namespace kernix
