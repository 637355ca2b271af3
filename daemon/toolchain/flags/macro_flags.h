// SPDX-License-Identifier: Apache-2.0
//
// -D and -U are no words of any command: what they say becomes lines of the source. A shell, or a tool that takes @file
// for further flags, then has nothing to read, whatever a macro holds. Internal to CheckFlags().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace kernix::toolchain {

// Adds the line that means the same as -D`text` ("X", "X=1", "F(x)=x"): "#define X 1", without a line end. `flag` is
// the flag as it was given. INVALID_REQUEST for a name that is no identifier, or a value that would go on in the next
// line.
absl::Status AddDefinition(std::string_view flag, std::string_view text, std::vector<std::string>& lines);

// Likewise of -U.
absl::Status AddUndefinition(std::string_view flag, std::string_view name, std::vector<std::string>& lines);

}  // namespace kernix::toolchain
