// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/leading_includes.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <vector>

#include "common/base/strings.h"
#include "common/cxx/lexer.h"

namespace kernix::language {
namespace {

// The rest of a line without a comment of the form that ends on the line.
std::string_view WithoutComment(std::string_view left) {
  const auto skip_blanks = [&left] { left.remove_prefix(std::min(left.find_first_not_of(" \t\r"), left.size())); };
  skip_blanks();
  const size_t end = left.starts_with("/*") ? left.find("*/", 2) : std::string_view::npos;
  if (end == std::string_view::npos) return left;
  left.remove_prefix(end + 2);
  skip_blanks();
  return left;
}

// nullopt if the token is not a piece of the text: a line break was in it.
std::optional<size_t> OffsetOf(const Token& token, std::string_view text) {
  if (token.text.data() < text.data() || token.text.data() >= text.data() + text.size()) return std::nullopt;
  return static_cast<size_t>(token.text.data() - text.data());
}

// The offset of the line after the one on which `token` ends a directive; nullopt if something other than blanks and a
// comment follows the token.
std::optional<size_t> NextLine(std::string_view text, const Token& token) {
  const std::optional<size_t> begin = OffsetOf(token, text);
  if (!begin) return std::nullopt;
  const size_t at = *begin + token.text.size();
  const size_t newline = text.find('\n', at);
  if (newline == std::string_view::npos) return std::nullopt;
  const std::string_view left = WithoutComment(text.substr(at, newline - at));
  const bool is_plain = left.empty() || left.starts_with("//");
  return is_plain && left.find('\\') == std::string_view::npos ? std::optional<size_t>(newline + 1) : std::nullopt;
}

class Finder {
 public:
  Finder(std::string_view unit, std::string_view name)
      : unit_(unit), lexer_(unit, storage_), label_(StrCat("\"", name, "\"")) {}

  std::optional<LeadingIncludes> Find() {
    std::vector<Token> directive;
    Token token;
    bool more = lexer_.Next(token);
    while (more && token.starts_directive) {
      directive.clear();
      do {
        directive.push_back(token);
        more = lexer_.Next(token);
      } while (more && token.in_directive && !token.starts_directive);
      if (directive.size() > 1 && !Take(directive)) break;
    }
    return found_;
  }

 private:
  // False: what follows is not understood.
  bool Take(const std::vector<Token>& directive) {
    const std::string_view word = directive[1].text;
    if (word == "line") return TakeLine(directive);
    if (directive[1].kind == TokenKind::kNumber) return false;  // `# 7 "name"`
    if (word == "if" || word == "ifdef" || word == "ifndef") ++open_conditions_;
    if (word == "endif") --open_conditions_;
    if (open_conditions_ < 0) return false;
    if (open_conditions_ > 0 || word != "include") return true;
    const std::optional<size_t> next = NextLine(unit_, directive.back());
    if (!next) return false;
    const auto lines = std::count(unit_.begin() + static_cast<ptrdiff_t>(counted_from_),
                                  unit_.begin() + static_cast<ptrdiff_t>(*next), '\n');
    const std::string name = StrCat(first_line_ + lines, " ", label_);
    found_ = LeadingIncludes{.end = *next, .next_line = name, .code_line = name};
    return true;
  }

  bool TakeLine(const std::vector<Token>& directive) {
    if (open_conditions_ > 0 || directive.size() != 4) return false;
    const std::string_view number = directive[2].text, label = directive[3].text;
    int64_t line = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), line);
    const std::optional<size_t> next = NextLine(unit_, directive.back());
    if (error != std::errc() || end != number.data() + number.size() || !label.starts_with('"') || !next) return false;
    first_line_ = line;
    label_ = label;
    counted_from_ = *next;
    if (ComesNext(directive.front())) found_->code_line = StrCat(line, " ", label);
    return true;
  }

  // Whether only blanks lie between the last #include and a token.
  bool ComesNext(const Token& token) const {
    const std::optional<size_t> at = OffsetOf(token, unit_);
    return found_ && at &&
           unit_.substr(found_->end, *at - found_->end).find_first_not_of(" \t\r\n") == std::string_view::npos;
  }

  const std::string_view unit_;
  std::deque<std::string> storage_;
  Lexer lexer_;
  int open_conditions_ = 0;
  // The number and the name of the line at `counted_from_`.
  int64_t first_line_ = 1;
  std::string label_;
  size_t counted_from_ = 0;
  std::optional<LeadingIncludes> found_;
};

}  // namespace

std::optional<LeadingIncludes> FindLeadingIncludes(std::string_view unit, std::string_view name) {
  if (unit.find("?\?/") != std::string_view::npos) return std::nullopt;  // it may be a backslash
  return Finder(unit, name).Find();
}

}  // namespace kernix::language
