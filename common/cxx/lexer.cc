// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/lexer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/strings.h"

namespace kernix::language {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }

// Bytes that can be part of a word: of a keyword, or of an identifier, which may contain any non-ASCII byte.
constexpr std::array<bool, 256> kWordPart = [] {
  std::array<bool, 256> parts{};
  for (int c = 0; c < 256; ++c) {
    parts[c] =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c >= 0x80;
  }
  return parts;
}();

bool IsWordPart(char c) { return kWordPart[static_cast<unsigned char>(c)]; }
bool IsWordStart(char c) { return IsWordPart(c) && !IsDigit(c); }

// Encoding prefixes of literals.
bool IsLiteralPrefix(std::string_view text) { return text == "L" || text == "u" || text == "U" || text == "u8"; }

bool IsRawPrefix(std::string_view text) {
  return !text.empty() && text.back() == 'R' && (text.size() == 1 || IsLiteralPrefix(text.substr(0, text.size() - 1)));
}

bool NamesFile(std::string_view directive) {
  return directive == "include" || directive == "include_next" || directive == "import";
}

// The length of the splice at `at`, or 0 if there is none.
size_t SpliceLength(std::string_view text, size_t at) {
  if (at >= text.size() || text[at] != '\\') return 0;
  size_t end = at + 1;
  while (end < text.size() && IsBlank(text[end])) ++end;
  return end < text.size() && text[end] == '\n' ? end + 1 - at : 0;
}

}  // namespace

std::string WithoutSplices(std::string_view text, std::string_view instead) {
  std::string joined;
  for (size_t at = 0; at < text.size();) {
    const size_t length = SpliceLength(text, at);
    if (length == 0) {
      joined += text[at++];
    } else {
      joined += instead;
      at += length;
    }
  }
  return joined;
}

Lexer::Lexer(std::string_view text, std::deque<std::string>& storage, const LexerOptions& options)
    : text_(text), storage_(storage), options_(options) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  SkipSplices();
}

bool Lexer::Next(Token& token) {
  if (!SkipSpace()) return false;
  Read(token, expected_ == Expected::kHeaderName);
  return true;
}

bool Lexer::NextInDirective(Token& token) {
  while (SkipSpace()) {
    if (in_directive_ || StartsDirective()) {
      Read(token, expected_ == Expected::kHeaderName);
      return true;
    }
    SkipText();
  }
  return false;
}

bool Lexer::NextHeaderName(Token& token) {
  if (!SkipSpace()) return false;
  Read(token, in_directive_);
  return true;
}

char Lexer::Peek(int ahead) const {
  size_t at = at_;
  for (; ahead > 0 && at < text_.size(); --ahead) {
    ++at;
    while (const size_t length = SpliceLength(text_, at)) at += length;
  }
  return at < text_.size() ? text_[at] : '\0';
}

void Lexer::Step() {
  line_ += text_[at_] == '\n';
  end_ = ++at_;
  if (Peek() == '\\') SkipSplices();
}

void Lexer::SkipSplices() {
  while (const size_t length = SpliceLength(text_, at_)) {
    first_splice_ = std::min(first_splice_, at_);
    at_ += length;
    ++line_;
  }
}

// Moves to `at`, over text in which splices have no meaning.
void Lexer::Jump(size_t at) {
  line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + at, '\n'));
  at_ = end_ = at;
}

bool Lexer::HasRoom() const {
  const size_t comments = options_.comments == nullptr ? 0 : options_.comments->size();
  return count_ + comments < options_.max_tokens;
}

// Moves to the next token. Returns false at the end, or when the token limit is reached.
bool Lexer::SkipSpace() {
  space_ = false;
  while (HasRoom() && !at_end()) {
    const char c = text_[at_];
    if (c == '\n') {
      line_start_ = true;
      in_directive_ = false;
      expected_ = Expected::kNothing;
      Step();
    } else if (IsBlank(c) || c == '\0') {
      Step();
    } else if (!SkipComment()) {
      return true;
    }
    space_ = true;
  }
  return false;
}

bool Lexer::SkipComment() {
  if (text_[at_] != '/') return false;
  const char second = Peek(1);
  if (second != '/' && second != '*') return false;
  const int line = line_;
  Step();
  Step();
  if (second == '*') {
    SkipBlockComment();
  } else {
    SkipLineComment(line);
  }
  return true;
}

void Lexer::SkipLineComment(int line) {
  const size_t begin = at_;
  while (true) {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    size_t last = end;
    while (last > at_ && IsBlank(text_[last - 1])) --last;
    const bool goes_on = end < text_.size() && last > at_ && text_[last - 1] == '\\';
    at_ = goes_on ? end + 1 : end;
    if (!goes_on) break;
    ++line_;
  }
  const std::string_view comment = text_.substr(begin, at_ - begin);
  if (options_.comments != nullptr && comment.find("@BE") != std::string_view::npos) {
    options_.comments->push_back({comment, line, count_});
  }
}

void Lexer::SkipBlockComment() {
  while (true) {
    Jump(std::min(text_.find('*', at_), text_.size()));
    if (at_end()) return;
    Step();
    if (Peek() != '/') continue;
    Step();
    return;
  }
}

// Moves to the end of the line, past the comments on it.
void Lexer::SkipText() {
  while (!at_end() && text_[at_] != '\n') {
    const char c = text_[at_];
    if (IsWordStart(c)) {
      ReadWord();
    } else if (c == '"' || c == '\'') {
      ReadLiteral();
    } else if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      ReadNumber();
    } else if (!SkipComment()) {
      Step();
    }
  }
}

bool Lexer::StartsDirective() const { return line_start_ && (Peek() == '#' || (Peek() == '%' && Peek(1) == ':')); }

void Lexer::Read(Token& token, bool header_name) {
  const size_t begin = at_;
  first_splice_ = std::string_view::npos;
  token.line = line_;
  token.space_before = space_;
  token.starts_directive = StartsDirective();
  if (token.starts_directive) in_directive_ = true;
  token.in_directive = in_directive_;
  line_start_ = false;
  token.text = {};
  if (!header_name || !ReadHeaderName(token)) ReadKind(token);
  if (token.text.empty()) token.text = TextFrom(begin);
  if (in_directive_) Expect(token);
  ++count_;
}

// The text from `begin` on, without splices, in one piece.
std::string_view Lexer::TextFrom(size_t begin) {
  const std::string_view written = text_.substr(begin, end_ - begin);
  return first_splice_ < end_ ? storage_.emplace_back(WithoutSplices(written)) : written;
}

// Notes what the line expects after `token`.
void Lexer::Expect(const Token& token) {
  const Expected before = std::exchange(expected_, Expected::kNothing);
  if (token.starts_directive) {
    expected_ = Expected::kDirective;
    is_definition_ = false;
  } else if (before == Expected::kDirective) {
    is_definition_ = token.Is("define");
    if (NamesFile(token.text)) expected_ = Expected::kHeaderName;
  } else if (before == Expected::kOpen && token.Is("(")) {
    expected_ = Expected::kHeaderName;
  }
  // A macro's body consists of plain tokens: <x> may contain its parameter.
  if (token.IsIdentifier() && !is_definition_ && AsksForHeader(token.text)) expected_ = Expected::kOpen;
}

// Reads <name> or "name", in which no character is special. Reads nothing and returns false if the line has neither
// here.
bool Lexer::ReadHeaderName(Token& token) {
  const char open = Peek();
  if ((open != '<' && open != '"') || at_ < unclosed_until_) return false;
  const char close = open == '<' ? '>' : '"';
  const auto before = std::tuple(at_, line_, end_);
  Step();
  while (!at_end() && Peek() != close && Peek() != '\n') Step();
  if (Peek() == close) {
    Step();
    token.kind = open == '<' ? TokenKind::kHeaderName : TokenKind::kString;
    return true;
  }
  unclosed_until_ = at_;
  first_splice_ = std::string_view::npos;
  std::tie(at_, line_, end_) = before;
  return false;
}

// Sets the kind of `token`. Sets the text, too, if it differs from the spelling.
void Lexer::ReadKind(Token& token) {
  const char c = Peek();
  if (IsWordStart(c)) {
    token.kind = ReadWord();
  } else if (c == '"' || c == '\'') {
    token.kind = ReadLiteral();
  } else if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
    token.kind = ReadNumber();
  } else {
    token.kind = TokenKind::kPunctuator;
    token.text = ReadPunctuator();
  }
}

TokenKind Lexer::ReadWord() {
  const size_t begin = at_;
  do {
    while (at_ + 1 < text_.size() && IsWordPart(text_[at_ + 1])) ++at_;
    Step();
  } while (IsWordPart(Peek()));
  if (Peek() != '"' && Peek() != '\'') return TokenKind::kIdentifier;
  const std::string_view word = TextFrom(begin);
  if (Peek() == '"' && IsRawPrefix(word) && ReadRawString()) return TokenKind::kString;
  return IsLiteralPrefix(word) ? ReadLiteral() : TokenKind::kIdentifier;
}

// Reads to the closing quote, or to the end of the line if there is none.
TokenKind Lexer::ReadLiteral() {
  const char quote = Peek();
  Step();
  while (!at_end() && Peek() != quote && Peek() != '\n') {
    const bool escape = Peek() == '\\';
    Step();
    if (escape && !at_end() && Peek() != '\n') Step();
  }
  if (Peek() == quote) Step();
  return quote == '"' ? TokenKind::kString : TokenKind::kCharacter;
}

// Reads nothing and returns false unless "( or "name( follows.
bool Lexer::ReadRawString() {
  constexpr size_t kMaxDelimiter = 16;
  const std::string_view begin = text_.substr(at_ + 1, kMaxDelimiter + 1);
  const size_t open = begin.find_first_of("()\\ \t\v\f\r\n\"");
  if (open == std::string_view::npos || begin[open] != '(') return false;
  const std::string close = StrCat(")", begin.substr(0, open), "\"");
  const size_t found = text_.find(close, at_ + 1 + open);
  Jump(found == std::string_view::npos ? text_.size() : found + close.size());
  first_splice_ = std::string_view::npos;  // text that looks like a splice is part of the literal
  SkipSplices();
  return true;
}

TokenKind Lexer::ReadNumber() {
  while (true) {
    const char c = Peek();
    const bool exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
    if ((exponent && (Peek(1) == '+' || Peek(1) == '-')) || (c == '\'' && IsWordPart(Peek(1)))) {
      Step();
      Step();
    } else if (IsWordPart(c) || c == '.') {
      Step();
    } else {
      return TokenKind::kNumber;
    }
  }
}

bool Lexer::Follows(std::string_view text) const {
  for (size_t i = 0; i < text.size(); ++i) {
    if (Peek(static_cast<int>(i)) != text[i]) return false;
  }
  return true;
}

// Returns the text that the punctuator stands for.
std::string_view Lexer::ReadPunctuator() {
  static constexpr std::pair<std::string_view, std::string_view> kLong[] = {
      {"...", "..."}, {"::", "::"}, {"->", "->"}, {"##", "##"}, {"%:%:", "##"},
      {"<%", "{"},    {"%>", "}"},  {"<:", "["},  {":>", "]"},  {"%:", "#"}};
  const std::string_view first = text_.substr(at_, 1);
  const bool may_be_long = first.find_first_of(".:-#%<") != std::string_view::npos;
  const bool qualifies = may_be_long && Follows("<::") && Peek(3) != ':' && Peek(3) != '>';  // f<::T>
  for (const auto& [written, meaning] : kLong) {
    if (!may_be_long || qualifies || !Follows(written)) continue;
    for (size_t i = 0; i < written.size(); ++i) Step();
    return meaning;
  }
  Step();
  return first;
}

LexedSource Lex(std::string_view text, int source, size_t max_tokens) {
  LexedSource result;
  result.source = source;
  Lexer lexer(text, *result.storage, {.max_tokens = max_tokens, .comments = &result.comments});
  Token token;
  token.source = source;
  while (lexer.Next(token)) result.tokens.push_back(token);
  result.is_complete = lexer.at_end();
  return result;
}

void LexInPieces(Lexer lexer, const std::function<void(const std::vector<Token>&, size_t)>& use) {
  constexpr size_t kPiece = 4096;
  constexpr size_t kLongLine = 100'000;
  std::vector<Token> tokens;
  size_t first = 0;
  for (Token token; lexer.Next(token);) {
    const bool in_line = token.in_directive && !token.starts_directive;
    if (tokens.size() >= (in_line ? kLongLine : kPiece)) {
      use(tokens, first);
      tokens.erase(tokens.begin(), tokens.end() - 4);
      first = 2;
    }
    tokens.push_back(token);
  }
  use(tokens, first);
}

bool AsksForHeader(std::string_view word) { return word == "__has_include" || word == "__has_include_next"; }

bool IsIdentifierStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }

bool IsIdentifierPart(char c) { return IsIdentifierStart(c) || IsDigit(c); }

bool IsKeyword(std::string_view text) {
  static constexpr std::string_view kKeywords[] = {
      "alignas",   "alignof",  "and",      "and_eq",    "asm",          "auto",          "bitand",
      "bitor",     "bool",     "break",    "case",      "catch",        "char",          "char16_t",
      "char32_t",  "class",    "compl",    "const",     "const_cast",   "constexpr",     "continue",
      "decltype",  "default",  "delete",   "do",        "double",       "dynamic_cast",  "else",
      "enum",      "explicit", "export",   "extern",    "false",        "float",         "for",
      "friend",    "goto",     "if",       "inline",    "int",          "long",          "mutable",
      "namespace", "new",      "noexcept", "not",       "not_eq",       "nullptr",       "operator",
      "or",        "or_eq",    "private",  "protected", "public",       "register",      "reinterpret_cast",
      "return",    "short",    "signed",   "sizeof",    "static",       "static_assert", "static_cast",
      "struct",    "switch",   "template", "this",      "thread_local", "throw",         "true",
      "try",       "typedef",  "typeid",   "typename",  "union",        "unsigned",      "using",
      "virtual",   "void",     "volatile", "wchar_t",   "while",        "xor",           "xor_eq"};
  static const auto& keywords = *new absl::flat_hash_set<std::string_view>(std::begin(kKeywords), std::end(kKeywords));
  return keywords.contains(text);
}

std::string Spelled(absl::Span<const Token> tokens) {
  std::string text;
  for (const Token& token : tokens) {
    if (token.space_before && !text.empty()) text += ' ';
    text += token.text;
  }
  return text;
}

bool IsPlainIdentifier(std::string_view text) {
  if (text.empty() || IsDigit(text[0]) || IsKeyword(text)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return IsIdentifierPart(c) && c != '$'; });
}

}  // namespace kernix::language
