// SPDX-License-Identifier: Apache-2.0
//
// The part of a token after `scratch:`, a C++ expression for a number of bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

// Returns why `expression` is invalid; empty if it is valid. A valid expression contains no white space and nothing
// that could end the expression or start a statement or a literal, so it can neither run other code nor read a file.
std::string ProblemOfScratchExpression(std::string_view expression);

// `expression` with "`of`->*" before every operand, so its operators compute in the type that this yields. An operand
// with signs in front gets "`of`.After(\"-\")->*" in place of the signs. The text between the brackets of a call, an
// index or template arguments, and after a cast, stays as written. Invalid input gives invalid output.
std::string WithOperandsMarked(std::string_view expression, std::string_view of);

// The names in `expression` that may be parameters: those not after ".", "->" or "::". Views into `expression`.
std::vector<std::string_view> FreeNames(std::string_view expression);

}  // namespace kernix::language
