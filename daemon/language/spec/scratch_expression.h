// SPDX-License-Identifier: Apache-2.0
//
// What stands behind `scratch:`: a C++ expression for a number of bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

// Why `expression` cannot be one; empty when it can. It has no white space, and nothing that could end the expression,
// hold a statement or a text, so that it does what it says and reads no file.
std::string ProblemOfScratchExpression(std::string_view expression);

// `expression` with "`of`->*" before every operand, so that its operators compute in what that makes; an operand with
// signs in front has "`of`.After(\"-\")->*" in their place. What stands between the brackets of a call, an index or
// template arguments, and after a cast, stays as it is written. What is no expression stays none.
std::string WithOperandsMarked(std::string_view expression, std::string_view of);

// The names in `expression` that could be those of parameters: not what follows ".", "->" or "::". They point into it.
std::vector<std::string_view> FreeNames(std::string_view expression);

}  // namespace kernix::language
