// SPDX-License-Identifier: Apache-2.0
//
// The names under which callers ask for functions: "f", "a::b::f", and for an instance of a template, "f<float, 4>".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix::language {

struct FunctionName {
  std::string callee;  // the complete name, as C++ calls it
  std::string scope;   // "a::b::"; empty if it is not qualified
  std::string base;    // "f"
  bool is_template = false;
  std::vector<std::string> template_arguments;  // as written

  // The name under which the function is exported: an identifier in which '_' replaces characters that identifiers
  // cannot contain. "f", "a_b_f", "f_float_4".
  std::string Exported() const;
};

// The error for two functions, requested as `one` and `other`, that have the same exported name.
std::string SameExport(const FunctionName& one, const FunctionName& other);

// INVALID_REQUEST if `text` is not a function name or is too long.
absl::StatusOr<FunctionName> ParseFunctionName(std::string_view text);

// The number of characters in the name at the front of `text`: up to white space outside its brackets.
size_t FunctionNameLength(std::string_view text);

}  // namespace kernix::language
