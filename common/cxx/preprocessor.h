// SPDX-License-Identifier: Apache-2.0
//
// A rough C preprocessor. It expands the macros that the sources themselves define: a function that a macro makes (also
// by token pasting) then has a readable signature. It does not read headers. It keeps all branches of a conditional,
// except those that the sources themselves exclude with `#if 0` and `#if 1` or with their own certain definitions.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"

namespace kernix::language {

// Limits the cost of macros, because sources come from other users. Each field counts down; at 0, macros stay
// unexpanded. Fuzzers take hundreds of times as long for a token as kernixd, so in their build the limits are small.
struct MacroBudget {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  size_t tokens = 20'000;
  size_t text = 1 << 20;
  size_t work = 300'000;
#else
  size_t tokens = 1'000'000;  // tokens that macros produce
  size_t text = 32 << 20;     // bytes of these tokens: pasting and long arguments make large tokens out of short texts
  size_t work = 16'000'000;
#endif
};

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
