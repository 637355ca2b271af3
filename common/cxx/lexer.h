// SPDX-License-Identifier: Apache-2.0
//
// Splits C++ source text into tokens, in enough detail to read directives, signatures, macros and annotations.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace kernix::language {

enum class TokenKind { kIdentifier, kNumber, kString, kCharacter, kHeaderName, kPunctuator };

// `text` points into the source. If a splice (a backslash and the end of its line, perhaps with blanks between them)
// cuts the token in two, `text` points into separate storage that holds it in one piece. Punctuators are single
// characters, except "::", "->", "##" and "..."; a digraph has the text of the punctuator that it stands for.
// Identifiers may contain non-ASCII bytes.
struct Token {
  TokenKind kind = TokenKind::kPunctuator;
  std::string_view text;
  int source = 0;                 // index of the source text
  int line = 0;                   // from 1
  bool space_before = false;      // white space or a comment precedes it
  bool starts_directive = false;  // the '#' of a preprocessor line
  bool in_directive = false;      // on a preprocessor line, including its '#'

  bool Is(std::string_view expected) const { return text == expected && kind != TokenKind::kString; }
  bool IsIdentifier() const { return kind == TokenKind::kIdentifier; }
};

// A `//` comment as written, without its slashes.
struct LineComment {
  std::string_view text;
  int line = 0;
  size_t next_token = 0;  // index of the first token after it
};

struct LexerOptions {
  size_t max_tokens = std::numeric_limits<size_t>::max();  // stops after this many, `comments` included
  std::vector<LineComment>* comments = nullptr;            // receives those with "@BE"; null: all are dropped
};

// Reads the tokens of a text one after the other. Never fails: an unterminated literal or comment extends to the end of
// its line or of the text, and the compiler reports it later. Linear in the size of the text.
class Lexer {
 public:
  // `text` and `storage` must outlive the tokens.
  Lexer(std::string_view text, std::deque<std::string>& storage, const LexerOptions& options = {});

  // Reads the next token and leaves `token.source` unchanged. Returns false at the end. <name> is one token where a
  // directive expects a file: after #include, and after `__has_include(` outside of a #define.
  bool Next(Token& token);

  // Like Next(), but skips everything outside of preprocessor lines.
  bool NextInDirective(Token& token);

  // Like Next(), for callers that know that a <name> or a "name" may follow on this preprocessor line.
  bool NextHeaderName(Token& token);

  // Whether the whole text has been read.
  bool at_end() const { return at_ >= text_.size(); }

 private:
  enum class Expected { kNothing, kDirective, kOpen, kHeaderName };

  // The current character of text without splices, or '\0' past the end.
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char Peek(int ahead) const;
  bool Follows(std::string_view text) const;
  void Step();
  void SkipSplices();
  void Jump(size_t at);

  bool HasRoom() const;
  bool SkipSpace();
  bool SkipComment();
  void SkipText();
  void SkipLineComment(int line);
  void SkipBlockComment();

  bool StartsDirective() const;
  void Read(Token& token, bool header_name);
  void ReadKind(Token& token);
  bool ReadHeaderName(Token& token);
  TokenKind ReadWord();
  TokenKind ReadLiteral();
  bool ReadRawString();
  TokenKind ReadNumber();
  std::string_view ReadPunctuator();
  std::string_view TextFrom(size_t begin);
  void Expect(const Token& token);

  std::string_view text_;
  std::deque<std::string>& storage_;
  LexerOptions options_;
  size_t at_ = 0;
  size_t end_ = 0;             // past the last character; at_ is past the splices that follow it
  size_t first_splice_ = 0;    // of this token
  size_t unclosed_until_ = 0;  // no <name> ends before this offset
  size_t count_ = 0;
  int line_ = 1;
  bool line_start_ = true;
  bool in_directive_ = false;
  bool is_definition_ = false;
  bool space_ = false;
  Expected expected_ = Expected::kNothing;
};

struct LexedSource {
  int source = 0;
  std::vector<Token> tokens;
  std::vector<LineComment> comments;
  bool is_complete = true;
  std::shared_ptr<std::deque<std::string>> storage = std::make_shared<std::deque<std::string>>();  // of spliced tokens
};

// `text` and the result's storage must outlive the tokens. Reads at most `max_tokens` tokens and comments; if there are
// more, the result is incomplete.
LexedSource Lex(std::string_view text, int source, size_t max_tokens = std::numeric_limits<size_t>::max());

// Reads all tokens, a few thousand at a time, for texts of any size. `use` receives a piece and the index of the first
// new token. Each piece starts with the previous two tokens again, for code that looks back; its last two tokens come
// again in the next piece, for code that looks ahead. A preprocessor line of the length that people write is never
// split.
void LexInPieces(Lexer lexer, const std::function<void(const std::vector<Token>&, size_t)>& use);

std::string WithoutSplices(std::string_view text, std::string_view instead = "");

// Whether `word` is __has_include or __has_include_next.
bool AsksForHeader(std::string_view word);

// The text of `tokens`, with one space wherever white space or a comment separated two of them.
std::string Spelled(absl::Span<const Token> tokens);

bool IsIdentifierStart(char c);
bool IsIdentifierPart(char c);

// Whether `text` is an ASCII C++ identifier and not a keyword.
bool IsPlainIdentifier(std::string_view text);
bool IsKeyword(std::string_view text);

}  // namespace kernix::language
