// SPDX-License-Identifier: Apache-2.0
//
// What stands behind `scratch:`: a C++ expression for a number of bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::codegen {

// Why `expression` cannot be one; empty when it can. It has no white space, and nothing that could end the expression,
// hold a statement or a text, so that it does what it says and reads no file.
std::string ProblemOfScratchExpression(std::string_view expression);

// `expression`, in which every operand is an argument of `wrap`, so that its operators are those of what `wrap` makes;
// and what stands in [] one of `wrap`.Index(). The operands of a function's arguments are wrapped too; those of
// templates' arguments and of sizeof are not. What is no expression stays none.
std::string WithOperandsWrapped(std::string_view expression, std::string_view wrap);

// The names in `expression` that could be those of parameters: not what follows ".", "->" or "::". They point into it.
std::vector<std::string_view> FreeNames(std::string_view expression);

}  // namespace kernix::codegen
