// SPDX-License-Identifier: Apache-2.0
//
// A rough C preprocessor: expands the macros that the sources define themselves, so that functions which a macro makes
// (token pasting included) have a signature to read. Headers are not looked into, and of a conditional all branches are
// kept, except what `#if 0` and `#if 1` exclude.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"
#include "common/cxx/macro_table.h"

namespace kernix::language {

struct Comment {
  std::string_view text;
  int source = 0;
  int line = 0;
};

struct Include {
  std::string_view path;
  bool quoted = false;
};

// The header that an `#include` asks for; `rest` is what follows the word. nullopt when a macro names it.
std::optional<Include> ReadInclude(absl::Span<const Token> rest);

struct Preprocessed {
  // Expanded tokens of all sources. A token from a macro has the place of the outermost use. Conditionals stay as three
  // marks: the punctuators "#if", "#else" and "#endif"; those that are no macro's are `in_directive`.
  std::vector<Token> tokens;
  std::vector<Comment> comments;
  std::vector<Include> includes;
  std::deque<std::string> storage;  // of the text of pasted tokens
  bool has_text = false;            // some source has more than comments
};

// Whether one of the includes may be a header of the user's own.
bool IncludesUserHeaders(const Preprocessed& preprocessed);

// `sources` are one translation unit, lexed with their index as `source`. What they were lexed from must outlive the
// result. Macros that would grow beyond `budget` are left alone.
Preprocessed Preprocess(const std::vector<LexedSource>& sources, MacroBudget& budget);

}  // namespace kernix::language
