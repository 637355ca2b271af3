// SPDX-License-Identifier: Apache-2.0
//
// Finds the files that a C++ source may include. It reads the preprocessor lines only, in all branches of all
// conditionals.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kernix {

enum class IncludeForm {
  kQuoted,    // "name"
  kAngled,    // <name>
  kComputed,  // a macro: `name` is its name
};

struct IncludeName {
  IncludeForm form = IncludeForm::kQuoted;
  std::string name;
};

// #include, #include_next, #import, or a __has_include question.
struct ScannedInclude {
  IncludeName target;
  bool next = false;      // #include_next: the search starts after this file's folder
  bool question = false;  // __has_include
  int line = 0;
};

struct ScannedText {
  std::vector<ScannedInclude> includes;
  // The values of `#define NAME "file"`, `#define NAME <file>` and `#define NAME OTHER`, by name.
  std::map<std::string, std::vector<IncludeName>> definitions;
};

// Never fails: the compiler reports text that this function cannot read. It recognises comments and literals, so a name
// inside them is not an include. Linear in the size of `text`.
ScannedText ScanIncludes(std::string_view text);

}  // namespace kernix
