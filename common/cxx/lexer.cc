// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/lexer.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace kernix::language {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Encoding prefixes of literals.
bool IsLiteralPrefix(std::string_view text) { return text == "L" || text == "u" || text == "U" || text == "u8"; }

bool IsRawPrefix(std::string_view text) {
  return !text.empty() && text.back() == 'R' && (text.size() == 1 || IsLiteralPrefix(text.substr(0, text.size() - 1)));
}

// Part of a word: of an identifier, whatever bytes it may have, of a keyword.
bool IsWordStart(char c) { return IsIdentifierStart(c) || static_cast<unsigned char>(c) >= 0x80; }
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

class Lexer {
 public:
  Lexer(std::string_view text, int source, size_t max_tokens) : text_(text), source_(source), max_tokens_(max_tokens) {
    result_.source = source;
    if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;
  }

  LexedSource Run() {
    while (HasRoom() && SkipSpace()) ReadToken();
    result_.is_complete = at_ >= text_.size();
    return std::move(result_);
  }

  void RunInPieces(const std::function<void(const std::vector<Token>&, size_t)>& use) {
    constexpr size_t kPiece = 4096;
    constexpr size_t kLongLine = 100'000;
    std::vector<Token>& tokens = result_.tokens;
    size_t first = 0;
    while (SkipSpace()) {
      result_.comments.clear();
      if (tokens.size() >= (in_directive_ ? kLongLine : kPiece)) {
        use(tokens, first);
        tokens.erase(tokens.begin(), tokens.end() - 4);
        first = 2;
      }
      ReadToken();
    }
    use(tokens, first);
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  // The length of a line continuation here, or 0.
  size_t Continuation() const {
    if (Peek() != '\\') return 0;
    if (Peek(1) == '\n') return 2;
    return Peek(1) == '\r' && Peek(2) == '\n' ? 3 : 0;
  }

  // Steps over one character, or over a line continuation.
  void Step() {
    const size_t continuation = Continuation();
    at_ += std::max<size_t>(continuation, 1);
    if (text_[at_ - 1] == '\n') ++line_;
  }

  void EndLine() {
    line_start_ = true;
    in_directive_ = false;
  }

  bool HasRoom() const { return result_.tokens.size() + result_.comments.size() < max_tokens_; }

  // Goes to the next token; false at the end, or where no comment may follow.
  bool SkipSpace() {
    space_ = false;
    while (at_ < text_.size() && HasRoom()) {
      const char c = Peek();
      if (c == '/' && Peek(1) == '/') {
        SkipLineComment();
      } else if (c == '/' && Peek(1) == '*') {
        SkipBlockComment();
      } else if (c == '\n') {
        EndLine();
        Step();
      } else if (Continuation() != 0 || std::isspace(static_cast<unsigned char>(c)) || c == '\0') {
        Step();
      } else {
        return true;
      }
      space_ = true;
    }
    return false;
  }

  void SkipLineComment() {
    const int line = line_;
    at_ += 2;
    const size_t begin = at_;
    while (at_ < text_.size() && Peek() != '\n') Step();
    result_.comments.push_back({text_.substr(begin, at_ - begin), line, result_.tokens.size()});
  }

  void SkipBlockComment() {
    at_ += 2;
    while (at_ < text_.size() && !(Peek() == '*' && Peek(1) == '/')) Step();
    at_ = std::min(at_ + 2, text_.size());
  }

  void ReadToken() {
    const size_t begin = at_;
    const int line = line_;
    const bool starts_directive = line_start_ && (Peek() == '#' || (Peek() == '%' && Peek(1) == ':'));
    if (starts_directive) in_directive_ = true;
    line_start_ = false;
    std::string_view meaning;
    const TokenKind kind = ReadText(meaning);
    const std::string_view text = meaning.empty() ? text_.substr(begin, at_ - begin) : meaning;
    result_.tokens.push_back({kind, text, source_, line, space_, starts_directive, in_directive_});
  }

  // Sets `meaning` where that is not what is written.
  TokenKind ReadText(std::string_view& meaning) {
    const char c = Peek();
    if (c == '"' || c == '\'') return ReadLiteral();
    if (IsWordStart(c)) return ReadWord();
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return ReadNumber();
    return ReadPunctuator(meaning);
  }

  TokenKind ReadWord() {
    const size_t begin = at_;
    while (IsWordPart(Peek())) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (Peek() == '"' && IsRawPrefix(word)) return ReadRawString();
    if ((Peek() == '"' || Peek() == '\'') && IsLiteralPrefix(word)) return ReadLiteral();
    return TokenKind::kIdentifier;
  }

  TokenKind ReadLiteral() {
    const char quote = Peek();
    ++at_;
    while (at_ < text_.size() && Peek() != quote && Peek() != '\n') {
      if (Peek() == '\\' && Continuation() == 0 && at_ + 1 < text_.size() && Peek(1) != '\n') ++at_;
      Step();
    }
    if (Peek() == quote) ++at_;
    return quote == '"' ? TokenKind::kString : TokenKind::kCharacter;
  }

  TokenKind ReadRawString() {
    const size_t open = text_.find('(', at_);
    std::string close = ")";
    if (open != std::string_view::npos) close += text_.substr(at_ + 1, open - at_ - 1);
    close += '"';
    const size_t found = open == std::string_view::npos ? open : text_.find(close, open);
    const size_t end = found == std::string_view::npos ? text_.size() : found + close.size();
    line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
    at_ = end;
    return TokenKind::kString;
  }

  TokenKind ReadNumber() {
    while (true) {
      const char c = Peek();
      const bool exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
      if (exponent && (Peek(1) == '+' || Peek(1) == '-')) {
        at_ += 2;
      } else if (IsWordPart(c) || c == '.') {
        ++at_;
      } else if (c == '\'' && IsWordPart(Peek(1))) {
        at_ += 2;
      } else {
        return TokenKind::kNumber;
      }
    }
  }

  // Steps over a digraph; what it stands for, or nothing where there is none.
  std::string_view ReadDigraph() {
    static constexpr std::pair<std::string_view, std::string_view> kDigraphs[] = {
        {"%:%:", "##"}, {"<%", "{"}, {"%>", "}"}, {"<:", "["}, {":>", "]"}, {"%:", "#"}};
    const bool qualifies = Peek() == '<' && Peek(1) == ':' && Peek(2) == ':' && Peek(3) != ':' && Peek(3) != '>';
    for (const auto& [digraph, meaning] : kDigraphs) {
      if (qualifies || text_.substr(at_, digraph.size()) != digraph) continue;  // f<::T>
      at_ += digraph.size();
      return meaning;
    }
    return {};
  }

  TokenKind ReadPunctuator(std::string_view& meaning) {
    static constexpr std::string_view kLong[] = {"...", "::", "->", "##"};
    meaning = ReadDigraph();
    if (!meaning.empty()) return TokenKind::kPunctuator;
    for (std::string_view punctuator : kLong) {
      if (text_.substr(at_, punctuator.size()) == punctuator) {
        at_ += punctuator.size();
        return TokenKind::kPunctuator;
      }
    }
    ++at_;
    return TokenKind::kPunctuator;
  }

  const std::string_view text_;
  const int source_;
  const size_t max_tokens_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;
  bool in_directive_ = false;
  bool space_ = false;
  LexedSource result_;
};

}  // namespace

LexedSource Lex(std::string_view text, int source, size_t max_tokens) { return Lexer(text, source, max_tokens).Run(); }

void LexInPieces(std::string_view text, const std::function<void(const std::vector<Token>&, size_t)>& use) {
  Lexer(text, 0, std::numeric_limits<size_t>::max()).RunInPieces(use);
}

bool IsIdentifierStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }

bool IsIdentifierPart(char c) { return IsIdentifierStart(c) || IsDigit(c); }

bool IsKeyword(std::string_view text) {
  static const auto& keywords = *new absl::flat_hash_set<std::string_view>{"alignas",
                                                                           "alignof",
                                                                           "and",
                                                                           "and_eq",
                                                                           "asm",
                                                                           "auto",
                                                                           "bitand",
                                                                           "bitor",
                                                                           "bool",
                                                                           "break",
                                                                           "case",
                                                                           "catch",
                                                                           "char",
                                                                           "char16_t",
                                                                           "char32_t",
                                                                           "class",
                                                                           "compl",
                                                                           "const",
                                                                           "const_cast",
                                                                           "continue",
                                                                           "constexpr",
                                                                           "decltype",
                                                                           "default",
                                                                           "delete",
                                                                           "do",
                                                                           "double",
                                                                           "dynamic_cast",
                                                                           "else",
                                                                           "enum",
                                                                           "explicit",
                                                                           "export",
                                                                           "extern",
                                                                           "false",
                                                                           "float",
                                                                           "for",
                                                                           "friend",
                                                                           "goto",
                                                                           "if",
                                                                           "inline",
                                                                           "int",
                                                                           "long",
                                                                           "mutable",
                                                                           "namespace",
                                                                           "new",
                                                                           "noexcept",
                                                                           "not",
                                                                           "not_eq",
                                                                           "nullptr",
                                                                           "operator",
                                                                           "or",
                                                                           "or_eq",
                                                                           "private",
                                                                           "protected",
                                                                           "public",
                                                                           "register",
                                                                           "return",
                                                                           "short",
                                                                           "signed",
                                                                           "sizeof",
                                                                           "static",
                                                                           "static_cast",
                                                                           "struct",
                                                                           "switch",
                                                                           "template",
                                                                           "this",
                                                                           "thread_local",
                                                                           "throw",
                                                                           "true",
                                                                           "try",
                                                                           "typedef",
                                                                           "typeid",
                                                                           "typename",
                                                                           "union",
                                                                           "unsigned",
                                                                           "using",
                                                                           "virtual",
                                                                           "void",
                                                                           "volatile",
                                                                           "wchar_t",
                                                                           "while",
                                                                           "xor",
                                                                           "xor_eq",
                                                                           "reinterpret_cast",
                                                                           "static_assert"};
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
