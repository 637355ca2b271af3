// SPDX-License-Identifier: Apache-2.0
//
// C++ source text to tokens: as much as reading signatures, macros and annotations takes.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace kernix::language {

enum class TokenKind { kIdentifier, kNumber, kString, kCharacter, kPunctuator };

// `text` points into the source. Punctuators are single characters, except "::", "->", "##" and "..."; a digraph has
// the text of what it stands for. Identifiers may have bytes that are no ASCII.
struct Token {
  TokenKind kind = TokenKind::kPunctuator;
  std::string_view text;
  int source = 0;                 // index of the source text
  int line = 0;                   // from 1
  bool space_before = false;      // white space or a comment stands before it
  bool starts_directive = false;  // the '#' of a preprocessor line
  bool in_directive = false;      // on a preprocessor line, the '#' included

  bool Is(std::string_view expected) const { return text == expected && kind != TokenKind::kString; }
  bool IsIdentifier() const { return kind == TokenKind::kIdentifier; }
};

// A `//` comment without its slashes.
struct LineComment {
  std::string_view text;
  int line = 0;
  size_t next_token = 0;  // index of the first token after it
};

struct LexedSource {
  int source = 0;
  std::vector<Token> tokens;
  std::vector<LineComment> comments;
  bool is_complete = true;
};

// Never fails: a literal or comment without an end goes to the end of its line or of the text, and the compiler
// complains later. `text` must outlive the result. Reads at most `max_tokens` tokens and comments: the result is not
// complete when there are more.
LexedSource Lex(std::string_view text, int source, size_t max_tokens = std::numeric_limits<size_t>::max());

// All tokens of `text`, some thousand at once, for texts of any size. `use` gets a piece and the index of the first
// token to look at: two of those before are there once more, for what looks back, and two that end a piece come again
// in the next, for what looks ahead. A preprocessor line that people may have written is in one piece.
void LexInPieces(std::string_view text, const std::function<void(const std::vector<Token>&, size_t)>& use);

// The text of `tokens`, with one space where white space or a comment stood.
std::string Spelled(absl::Span<const Token> tokens);

bool IsIdentifierStart(char c);
bool IsIdentifierPart(char c);

// An ASCII C++ identifier that is no keyword.
bool IsPlainIdentifier(std::string_view text);
bool IsKeyword(std::string_view text);

}  // namespace kernix::language
