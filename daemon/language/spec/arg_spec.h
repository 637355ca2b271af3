// SPDX-License-Identifier: Apache-2.0
//
// arg_spec: the roles of a function's parameters, as a list of tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/language/spec/function_spec.h"

namespace kernix::language {

// A parsed token. `typed` is false for an attribute without a type ("attr.alpha").
struct ParsedToken {
  Parameter parameter;
  bool typed = true;
};

// Parses
//   arg  ret  stream  attr.<name>:<type>  attr.<name>:<type>[]  attr.<name>
// with the aliases args, rets, ctx.stream and attrs.<name>, and tokens that the reference does not have:
//   attr.<name>?  attr.<name>:<type>?  arg?  args...  rets...  arg.token  ret.token  device_ordinal
//   scratch:<expression>  arg:<type>  arg:<type>[<dimensions>]  ret:<type>  ret:<type>[<dimensions>]
//   arg.tensormap:<type>[<box>]  arg.tensormap:<type>[<box>]:swizzle_<bytes>B  ret.tensormap...
// INVALID_REQUEST, with `function` and the token, for anything else.
absl::StatusOr<ParsedToken> ParseToken(std::string_view function, std::string_view token);

// Checks the rules for a whole list: at least one result, at most one stream, no duplicate attributes, optional
// arguments last, and so on. INVALID_REQUEST with the function's name.
absl::Status CheckSpec(const FunctionSpec& spec);

// The most attributes with defaults that a function may have: the handler contains code for each number of them.
inline constexpr int kMaxDefaults = 16;

// INVALID_REQUEST unless `name` is an ASCII C++ identifier.
absl::Status CheckFunctionName(std::string_view name);

// --- The part of a token after `scratch:`, a C++ expression for a number of bytes

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
