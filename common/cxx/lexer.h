// SPDX-License-Identifier: Apache-2.0
//
// C++ source text to tokens: as much as reading directives, signatures, macros and annotations takes.
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

// `text` points into the source, or into storage beside it where a splice (a backslash and the end of its line, blanks
// between them or not) cuts the token in two: it is in one piece then. Punctuators are single characters, except "::",
// "->", "##" and "..."; a digraph has the text of what it stands for. Identifiers may have bytes that are no ASCII.
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

// A `//` comment without its slashes, as it is written.
struct LineComment {
  std::string_view text;
  int line = 0;
  size_t next_token = 0;  // index of the first token after it
};

struct LexerOptions {
  bool raw_strings = true;                                 // false: R"( is a word and a literal, as before C++11
  size_t max_tokens = std::numeric_limits<size_t>::max();  // ends after that many, comments included
  std::vector<LineComment>* comments = nullptr;            // gets the comments. Null: nobody wants them
};

// Reads the tokens of a text one after the other. Never fails: a literal or comment without an end goes to the end of
// its line or of the text, and the compiler complains later. Linear in the size of the text.
class Lexer {
 public:
  // `text` and `storage` must outlive the tokens.
  Lexer(std::string_view text, std::deque<std::string>& storage, const LexerOptions& options = {});

  // The next token, but for its `source`, which is left alone. False at the end. <name> is one token where a
  // directive asks for a file: after #include, and after `__has_include(` outside of a #define.
  bool Next(Token& token);

  // The same; passes over what is on no preprocessor line.
  bool NextInDirective(Token& token);

  // The same as Next() where the caller knows that a <name> or a "name" may follow on this preprocessor line.
  bool NextHeaderName(Token& token);

  // Whether all was read.
  bool at_end() const { return at_ >= text_.size(); }

 private:
  enum class Expected { kNothing, kDirective, kOpen, kHeaderName };

  // A character of the text without splices. '\0' behind the end.
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
  size_t end_ = 0;             // behind the last character, where at_ is behind the splices that follow it
  size_t first_splice_ = 0;    // of this token
  size_t unclosed_until_ = 0;  // no <name> ends before
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

// `text` and the result's storage must outlive the tokens. Reads at most `max_tokens` tokens and comments: the result
// is not complete when there are more.
LexedSource Lex(std::string_view text, int source, size_t max_tokens = std::numeric_limits<size_t>::max());

// All tokens, some thousand at once, for texts of any size. `use` gets a piece and the index of the first token to look
// at: two of those before are there once more, for what looks back, and two that end a piece come again in the next,
// for what looks ahead. A preprocessor line that people may have written is in one piece.
void LexInPieces(Lexer lexer, const std::function<void(const std::vector<Token>&, size_t)>& use);

// The length of the splice at `at`, or 0.
size_t SpliceLength(std::string_view text, size_t at);

std::string WithoutSplices(std::string_view text, std::string_view instead = "");

// __has_include and __has_include_next.
bool AsksForHeader(std::string_view word);

// The text of `tokens`, with one space where white space or a comment stood.
std::string Spelled(absl::Span<const Token> tokens);

bool IsIdentifierStart(char c);
bool IsIdentifierPart(char c);

// Whether `text` is an ASCII C++ identifier and not a keyword.
bool IsPlainIdentifier(std::string_view text);
bool IsKeyword(std::string_view text);

}  // namespace kernix::language
