// SPDX-License-Identifier: Apache-2.0
//
// A rough C preprocessor. It expands the macros that the sources themselves define: a function that a macro makes (also
// by token pasting) then has a readable signature. It does not read headers. It keeps all branches of a conditional,
// except those that the sources themselves exclude with `#if 0` and `#if 1` or with their own certain definitions.
#pragma once

#include <deque>
#include <memory>
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

// The header that an `#include` names; `rest` is the text after the word. Returns nullopt if a macro names it.
std::optional<Include> ReadInclude(absl::Span<const Token> rest);

struct Preprocessed {
  // The expanded tokens of all sources. A token from a macro has the position of the outermost use. Branches that may
  // or may not be compiled are between marks: the punctuators "#if", "#else" and "#endif".
  std::vector<Token> tokens;
  std::vector<Comment> comments;
  bool includes_user_headers = false;                                   // possibly
  std::deque<std::string> storage;                                      // holds the text of pasted tokens
  std::vector<std::shared_ptr<const std::deque<std::string>>> spliced;  // the sources' own storage
  bool has_text = false;                                                // some source contains more than comments
};

// `sources` form one translation unit; each was lexed with its index as `source`. The texts that they were lexed from
// must outlive the result. Macros that would exceed `budget` stay unexpanded.
Preprocessed Preprocess(const std::vector<LexedSource>& sources, MacroBudget& budget);

}  // namespace kernix::language
