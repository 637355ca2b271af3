// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/include_scan.h"

#include <deque>
#include <optional>
#include <utility>

#include "common/cxx/lexer.h"

namespace kernix {
namespace {

using language::AsksForHeader;
using language::Lexer;
using language::Token;
using language::TokenKind;

// The file name that `token` holds, where a file name is expected.
std::optional<IncludeName> NameIn(const Token& token) {
  if (token.IsIdentifier()) return IncludeName{IncludeForm::kComputed, std::string(token.text)};
  const bool angled = token.kind == TokenKind::kHeaderName;
  const bool quoted = token.text.size() > 1 && token.text.front() == '"' && token.text.back() == '"';
  if (!angled && !quoted) return std::nullopt;
  return IncludeName{angled ? IncludeForm::kAngled : IncludeForm::kQuoted,
                     std::string(token.text.substr(1, token.text.size() - 2))};
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : lexer_(text, storage_) {}

  ScannedText Scan() && {
    for (Token token; Read(token);) {
      if (token.in_directive) Look(token);
    }
    return std::move(result_);
  }

 private:
  // The meaning of the next token of a preprocessor line.
  enum class Expected { kNothing, kDirective, kInclude, kMacro, kValue, kOpen, kQuestion };

  bool Read(Token& token) {
    const bool names_file = expected_ == Expected::kValue || expected_ == Expected::kQuestion;
    return names_file ? lexer_.NextHeaderName(token) : lexer_.NextInDirective(token);
  }

  void Look(const Token& token) {
    const Expected now = token.starts_directive ? Expected::kNothing : expected_;
    expected_ = token.starts_directive ? Expected::kDirective : Expected::kNothing;
    switch (now) {
      case Expected::kDirective:
        return StartDirective(token);
      case Expected::kInclude:
        return NoteInclude(token, /*question=*/false);
      case Expected::kMacro:
        macro_ = token.IsIdentifier() ? token.text : "";
        if (token.IsIdentifier()) expected_ = Expected::kValue;
        return;
      case Expected::kQuestion:
        return NoteInclude(token, /*question=*/true);
      case Expected::kOpen:
        if (token.Is("(")) expected_ = Expected::kQuestion;
        return;
      case Expected::kValue:
        NoteValue(token);
        break;
      case Expected::kNothing:
        break;
    }
    if (!token.IsIdentifier() || !AsksForHeader(token.text)) return;
    next_ = token.text.ends_with("_next");
    expected_ = Expected::kOpen;
  }

  void StartDirective(const Token& name) {
    next_ = name.Is("include_next");
    if (next_ || name.Is("include") || name.Is("import")) {
      expected_ = Expected::kInclude;
    } else if (name.Is("define")) {
      expected_ = Expected::kMacro;
    }
  }

  void NoteInclude(const Token& token, bool question) {
    if (std::optional<IncludeName> target = NameIn(token)) {
      result_.includes.push_back({*std::move(target), next_, question, token.line});
    }
  }

  // `token` is the first one after the macro's name.
  void NoteValue(const Token& token) {
    if (!token.space_before) return;  // a parameter list
    if (std::optional<IncludeName> value = NameIn(token)) {
      result_.definitions[std::string(macro_)].push_back(*std::move(value));
    }
  }

  std::deque<std::string> storage_;
  Lexer lexer_;
  ScannedText result_;
  Expected expected_ = Expected::kNothing;
  bool next_ = false;       // for the current #include_next or question
  std::string_view macro_;  // the macro that is being defined
};

}  // namespace

ScannedText ScanIncludes(std::string_view text) { return Scanner(text).Scan(); }

}  // namespace kernix
