// SPDX-License-Identifier: Apache-2.0
//
// -D and -U become lines of the source instead of words of a command. So no shell, and no tool that takes @file for
// further flags, can misread a macro. Internal to CheckFlags().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace kernix::toolchain {

// Adds the line that is equivalent to -D`text` ("X", "X=1", "F(x)=x"): "#define X 1", without a line end. `flag` is the
// flag as the user gave it. INVALID_REQUEST for a name that is not an identifier, or a value that would continue on the
// next line.
absl::Status AddDefinition(std::string_view flag, std::string_view text, std::vector<std::string>& lines);

// The same for -U.
absl::Status AddUndefinition(std::string_view flag, std::string_view name, std::vector<std::string>& lines);

}  // namespace kernix::toolchain
