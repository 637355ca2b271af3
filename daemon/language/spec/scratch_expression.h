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

// What becomes of what stands between the brackets of a call or after a cast: its operands are marked, too, and the
// result is an argument of `wrap`.Pass() that the function gets; or, as a macro needs it, nothing.
enum class Arguments { kPassed, kAsWritten };

// `expression` with "`wrap`->*" before every operand, after its signs, so that its operators are those of what that
// makes; what stands in [] is an argument of `wrap`.Pass(). Templates' arguments, casts and sizeof stay as they are.
// What is no expression stays none.
std::string WithOperandsMarked(std::string_view expression, std::string_view wrap, Arguments arguments);

// The names in `expression` that "(" follows, each once: functions, types, or macros.
std::vector<std::string> CalledNames(std::string_view expression);

// The names in `expression` that could be those of parameters: not what follows ".", "->" or "::". They point into it.
std::vector<std::string_view> FreeNames(std::string_view expression);

}  // namespace kernix::language
