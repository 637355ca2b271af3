// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/include_scan.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"

namespace kernix {
namespace {

constexpr char kEnd = '\0';

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_' || c == '$' || static_cast<signed char>(c) < 0; }
bool IsNamePart(char c) { return IsNameStart(c) || absl::ascii_isdigit(c); }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }

// Characters of a text after line splicing.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // a byte order mark, which compilers skip
    SkipSplices();
  }

  bool at_end() const { return at_ >= text_.size(); }
  int line() const { return line_; }
  char Peek() const { return at_end() ? kEnd : text_[at_]; }

  // The character after Peek(), if no splice lies between them.
  char PeekSecond() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : kEnd; }

  char Take() {
    const char c = Peek();
    if (c == '\n') ++line_;
    if (!at_end()) ++at_;
    SkipSplices();
    return c;
  }

  // Moves behind the next `mark`, or to the end. For text in which splices mean nothing.
  void SkipBehind(std::string_view mark) {
    const size_t found = text_.find(mark, at_);
    const size_t stop = found == std::string_view::npos ? text_.size() : found + mark.size();
    for (; at_ < stop; ++at_) line_ += text_[at_] == '\n';
    SkipSplices();
  }

 private:
  void SkipSplices() {
    while (Peek() == '\\') {
      size_t end = at_ + 1;
      while (end < text_.size() && IsBlank(text_[end])) ++end;
      if (end >= text_.size() || text_[end] != '\n') return;
      at_ = end + 1;
      ++line_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : cursor_(text) {}

  ScannedText Scan() && {
    while (!cursor_.at_end()) ScanLine();
    return std::move(result_);
  }

 private:
  void ScanLine() {
    SkipBlanks();
    if (cursor_.Peek() == '#') {
      cursor_.Take();
      ScanDirective();
    }
    ScanTokens();
  }

  // To the end of the line: comments and literals are passed over, __has_include is noted.
  void ScanTokens() {
    while (!cursor_.at_end()) {
      const char c = cursor_.Peek();
      if (c == '\n') {
        cursor_.Take();
        return;
      }
      ScanToken(c);
    }
  }

  void ScanToken(char c) {
    if (IsNameStart(c)) {
      ScanName();
    } else if (absl::ascii_isdigit(c)) {
      SkipNumber();
    } else if (c == '"' || c == '\'') {
      SkipLiteral();
    } else if (!SkipComment()) {
      cursor_.Take();
    }
  }

  void ScanName() {
    const std::string name = TakeName();
    if (cursor_.Peek() == '"' && (name == "R" || name == "u8R" || name == "uR" || name == "UR" || name == "LR")) {
      SkipRawString();
    } else if (name == "__has_include" || name == "__has_include_next") {
      ScanQuestion(name == "__has_include_next");
    }
  }

  void ScanQuestion(bool next) {
    SkipBlanks();
    if (cursor_.Peek() != '(') return;
    cursor_.Take();
    SkipBlanks();
    NoteInclude(next, /*question=*/true);
  }

  void ScanDirective() {
    SkipBlanks();
    const std::string directive = TakeName();
    SkipBlanks();
    if (directive == "include" || directive == "import") NoteInclude(false, false);
    if (directive == "include_next") NoteInclude(true, false);
    if (directive == "define") NoteDefinition();
  }

  void NoteInclude(bool next, bool question) {
    const int line = cursor_.line();
    if (std::optional<IncludeName> target = TakeIncludeName()) {
      result_.includes.push_back({*std::move(target), next, question, line});
    }
  }

  void NoteDefinition() {
    const std::string name = TakeName();
    if (name.empty() || cursor_.Peek() == '(') return;
    SkipBlanks();
    if (std::optional<IncludeName> value = TakeIncludeName()) result_.definitions[name].push_back(*std::move(value));
  }

  std::optional<IncludeName> TakeIncludeName() {
    const char c = cursor_.Peek();
    if (c == '"') return TakeUntil('"', IncludeForm::kQuoted);
    if (c == '<') return TakeUntil('>', IncludeForm::kAngled);
    if (!IsNameStart(c)) return std::nullopt;
    return IncludeName{IncludeForm::kComputed, TakeName()};
  }

  std::optional<IncludeName> TakeUntil(char close, IncludeForm form) {
    cursor_.Take();
    IncludeName target{form, ""};
    while (!cursor_.at_end() && cursor_.Peek() != '\n') {
      const char c = cursor_.Take();
      if (c == close) return target;
      target.name += c;
    }
    return std::nullopt;
  }

  std::string TakeName() {
    std::string name;
    while (IsNamePart(cursor_.Peek())) name += cursor_.Take();
    return name;
  }

  // Digit separators are no quotes.
  void SkipNumber() {
    while (IsNamePart(cursor_.Peek()) || cursor_.Peek() == '.' ||
           (cursor_.Peek() == '\'' && IsNamePart(cursor_.PeekSecond()))) {
      cursor_.Take();
    }
  }

  // One that does not end stops at the end of its line.
  void SkipLiteral() {
    const char quote = cursor_.Take();
    while (!cursor_.at_end() && cursor_.Peek() != '\n') {
      const char c = cursor_.Take();
      if (c == quote) return;
      if (c == '\\' && cursor_.Peek() != '\n') cursor_.Take();
    }
  }

  void SkipRawString() {
    cursor_.Take();
    std::string close = ")";
    while (!cursor_.at_end() && cursor_.Peek() != '(' && close.size() <= 17) close += cursor_.Take();
    cursor_.SkipBehind(close + "\"");
  }

  bool SkipComment() {
    if (cursor_.Peek() != '/') return false;
    const char second = cursor_.PeekSecond();
    if (second != '/' && second != '*') return false;
    cursor_.Take();
    cursor_.Take();
    if (second == '*') {
      cursor_.SkipBehind("*/");
    } else {
      while (!cursor_.at_end() && cursor_.Peek() != '\n') cursor_.Take();
    }
    return true;
  }

  void SkipBlanks() {
    while (IsBlank(cursor_.Peek()) || SkipComment()) {
      if (IsBlank(cursor_.Peek())) cursor_.Take();
    }
  }

  Cursor cursor_;
  ScannedText result_;
};

}  // namespace

ScannedText ScanIncludes(std::string_view text) { return Scanner(text).Scan(); }

}  // namespace kernix
