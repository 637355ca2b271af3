// SPDX-License-Identifier: Apache-2.0
//
// Checks which files a text makes the compiler or the assembler read, beyond the headers that the client sends.
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
  // Returns why the text `label` may not include the header at a path that is absolute or leads above its starting
  // folder; empty if it may.
  std::function<std::string(std::string_view label, const Include& name)> outside;
  // Whether to check what the assembler would read. Not needed if the assembler has reported what it read.
  bool assembler_text = true;
  // Whether to refuse `#pragma GCC dependency`, which reveals whether a file exists and how old it is.
  bool dependency_pragmas = true;
  // Whether to refuse a '#' that macros would put at the beginning of a line: cudafe++ and cicc read the preprocessor's
  // output again and would take it for a directive.
  bool made_directives = false;
};

// INVALID_REQUEST, with label and line, if `texts` (one translation unit) contain one of these: an assembler's
// `.incbin` or `.include` in a string, `#embed`, `__has_embed`, and what the rules refuse. Does not evaluate
// conditions, so a branch that is not compiled counts, too. Does not see what macros put together: callers who need
// certainty must check after the build what the tools have read.
absl::Status CheckFileReads(const std::vector<TextView>& texts, const FileReadRules& rules);

}  // namespace kernix::language
