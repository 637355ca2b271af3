// SPDX-License-Identifier: Apache-2.0
//
// A rough C preprocessor: expands the macros that the sources define themselves, so that functions which a macro makes
// (token pasting included) have a signature to read. Headers are not looked into. Of a conditional all branches are
// kept but those that the sources themselves exclude: by `#if 0` and `#if 1`, and by what they define for sure.
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

// The header that an `#include` asks for; `rest` is what follows the word. nullopt when a macro names it.
std::optional<Include> ReadInclude(absl::Span<const Token> rest);

struct Preprocessed {
  // Expanded tokens of all sources. A token from a macro has the place of the outermost use. Branches that are compiled
  // perhaps stand between marks: the punctuators "#if", "#else" and "#endif".
  std::vector<Token> tokens;
  std::vector<Comment> comments;
  bool includes_user_headers = false;                                   // perhaps
  std::deque<std::string> storage;                                      // of the text of pasted tokens
  std::vector<std::shared_ptr<const std::deque<std::string>>> spliced;  // that of the sources' own
  bool has_text = false;                                                // some source has more than comments
};

// `sources` are one translation unit, lexed with their index as `source`. What they were lexed from must outlive the
// result. Macros that would grow beyond `budget` are left alone.
Preprocessed Preprocess(const std::vector<LexedSource>& sources, MacroBudget& budget);

}  // namespace kernix::language
