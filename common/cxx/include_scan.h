// SPDX-License-Identifier: Apache-2.0
//
// Which files a C++ source may include: a light reading of its preprocessor lines, in all branches of all conditions.
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

// #include, #include_next, #import, or a question of __has_include.
struct Include {
  IncludeName target;
  bool next = false;      // #include_next: the search begins behind the folder of this file
  bool question = false;  // __has_include
  int line = 0;
};

struct ScannedText {
  std::vector<Include> includes;
  // What `#define NAME "file"`, `#define NAME <file>` and `#define NAME OTHER` say, by name.
  std::map<std::string, std::vector<IncludeName>> definitions;
};

// Never fails: what cannot be read is the compiler's to complain about. Comments and literals are understood, so that a
// name in them is not an include. Linear.
ScannedText ScanIncludes(std::string_view text);

}  // namespace kernix
