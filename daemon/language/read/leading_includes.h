// SPDX-License-Identifier: Apache-2.0
//
// Finds the #includes that a translation unit begins with. Many units begin with the same ones.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kernix::language {

struct LeadingIncludes {
  size_t end = 0;         // the offset of the line that follows the last one
  std::string next_line;  // the compiler's name of that line, as in a #line directive: `7 "kernel.cu"`
  std::string code_line;  // the same, or what a #line directive that comes next calls the line after it
};

// nullopt if there are none, or if their end is not certain. Only preprocessor lines, comments and blanks come before
// the end, and no condition is open there. `name`: what the compiler calls the unit.
std::optional<LeadingIncludes> FindLeadingIncludes(std::string_view unit, std::string_view name);

}  // namespace kernix::language
