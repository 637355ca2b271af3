// SPDX-License-Identifier: Apache-2.0
//
// How people name the function to export: "f", "a::b::f", and, of a template, one of its instances: "f<float, 4>".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix::language {

struct FunctionName {
  std::string callee;  // the whole, as C++ calls it
  std::string scope;   // "a::b::"; "" when it is not qualified
  std::string base;    // "f"
  bool is_template = false;
  std::vector<std::string> template_arguments;  // as they are written

  // The name that the function is exported under: an identifier, in which a '_' stands for what cannot be part of one.
  // "f", "a_b_f", "f_float_4".
  std::string Exported() const;
};

// The error for two functions, asked for as `one` and `other`, whose exported names are the same.
std::string SameExport(const FunctionName& one, const FunctionName& other);

// INVALID_REQUEST for anything else, and for names that are too long.
absl::StatusOr<FunctionName> ParseFunctionName(std::string_view text);

// How many characters of `text` are the name in front: up to white space that is not between its brackets.
size_t FunctionNameLength(std::string_view text);

}  // namespace kernix::language
