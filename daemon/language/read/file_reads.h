// SPDX-License-Identifier: Apache-2.0
//
// Files that a text makes the compiler or the assembler read by itself, past the headers that were sent along.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/spec/source_text.h"

namespace kernix::language {

struct FileReadRules {
  // Why the header at a path that is absolute, or leads above the folder where it begins, may not be included by the
  // text `label`; empty when it may.
  std::function<std::string(std::string_view label, const Include& name)> outside;
  // Whether what the assembler would read counts: not where it has told what it did read.
  bool assembler_text = true;
  // Whether `#pragma GCC dependency` is refused, which tells whether a file is there, and how old it is.
  bool dependency_pragmas = true;
  // Whether a '#' is refused that macros would put at the beginning of a line: cudafe++ and cicc read what the
  // preprocessor has written once more, and would take it for a directive.
  bool made_directives = false;
};

// INVALID_REQUEST, with label and line, for one of these in `texts`, which are one translation unit: an `.incbin` or
// `.include` of the assembler in a string, `#embed`, `__has_embed`, and what the rules refuse. Conditions are not
// evaluated, so that a branch that is not compiled counts too. What macros put together is not seen: whoever needs
// certainty asks the tools, after the build, what they have read.
absl::Status CheckFileReads(const std::vector<TextView>& texts, const FileReadRules& rules);

}  // namespace kernix::language
