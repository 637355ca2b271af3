// SPDX-License-Identifier: Apache-2.0
//
// What stands behind `scratch:`: a C++ expression for a number of bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

// Why `expression` is not valid; empty when it is. It may hold no white space and nothing that could end the
// expression, start a statement or a literal, so it can neither run other code nor read a file.
std::string ProblemOfScratchExpression(std::string_view expression);

// `expression` with "`of`->*" before every operand, so that its operators compute in what that makes; an operand with
// signs in front has "`of`.After(\"-\")->*" in their place. What stands between the brackets of a call, an index or
// template arguments, and after a cast, stays as written. Invalid input gives invalid output.
std::string WithOperandsMarked(std::string_view expression, std::string_view of);

// The names in `expression` that may be parameters: those not after ".", "->" or "::". Views into `expression`.
std::vector<std::string_view> FreeNames(std::string_view expression);

}  // namespace kernix::language
