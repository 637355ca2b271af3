// SPDX-License-Identifier: Apache-2.0
//
// `// @BE name [tokens]` marks a function for export.
#pragma once

#include <string>
#include <vector>

#include "common/cxx/preprocessor.h"

namespace kernix::language {

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
