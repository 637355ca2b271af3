// SPDX-License-Identifier: Apache-2.0
//
// The names of functions: callers' names ("f", "a::b::f", and for an instance of a template, "f<float, 4>"), and those
// in `// @BE name [tokens]`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cxx/preprocessor.h"

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

// `// @BE name [tokens]` marks a function for export.
struct Annotation {
  std::string name;                 // empty: the comment has no name
  std::vector<std::string> tokens;  // empty: the signature decides
  int source = 0;
  int line = 0;
};

// The annotations among `comments`: those that begin with "@BE" and white space, after any number of slashes. Block
// comments, string literals and text that `#if 0` excludes do not count.
std::vector<Annotation> FindAnnotations(const std::vector<Comment>& comments);

}  // namespace kernix::language
