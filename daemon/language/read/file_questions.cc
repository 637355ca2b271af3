// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/file_questions.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "common/cxx/macro_table.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {
namespace {

using Tokens = absl::Span<const Token>;
using Line = std::vector<Token>;

constexpr std::string_view kQuestions[] = {"__has_include", "__has_include_next"};
// The longest chain of macros that expand to a question.
constexpr int kMaxRounds = 16;
constexpr size_t kLongLine = 100'000;
constexpr char kComputed[] =
    "kernix cannot tell which file this asks for, so it cannot notice when the answer changes. Ask for a name in "
    "quotes "
    "or in <>, or pass -D with the answer";

// A quick check. Headers of the toolchain have wrappers, too (TOML_HAS_INCLUDE), which only their names reveal.
bool MayHoldQuestion(std::string_view text) {
  return text.find("has_include") != std::string_view::npos || text.find("HAS_INCLUDE") != std::string_view::npos;
}
bool LooksLikeQuestion(std::string_view word) { return MayHoldQuestion(word); }

// Whether a line splice cuts a word in two.
bool CutsWord(std::string_view text) {
  for (size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at + 1)) {
    const size_t length = SpliceLength(text, at);
    const size_t after = at + length;
    if (length > 0 && at > 0 && IsIdentifierPart(text[at - 1]) && after < text.size() &&
        (IsIdentifierPart(text[after]) || text[after] == '\\')) {
      return true;
    }
  }
  return false;
}

// Whether `#define` precedes the word at `at`. A quick check: also true if a comment or a new line precedes it.
bool FollowsDefine(std::string_view text, size_t at) {
  const size_t before = at == 0 ? std::string_view::npos : text.find_last_not_of(" \t\v\f\r", at - 1);
  if (before == std::string_view::npos) return false;
  const std::string_view left = text.substr(0, before + 1);
  return left.ends_with("define") || left.ends_with("*/") || left.ends_with('\n');
}

// Compilers and their headers define macros with such names, whatever a text says about them.
bool IsReserved(std::string_view name) {
  return name.starts_with("__") || (name.size() > 1 && name[0] == '_' && name[1] >= 'A' && name[1] <= 'Z');
}

// The token of NAME in "[prefix] define NAME".
const Token* DefinedName(const Line& line) {
  return line.size() > 2 && line[1].Is("define") && line[2].IsIdentifier() ? &line[2] : nullptr;
}

// True for "[prefix] define NAME(x)".
bool TakesArguments(const Line& line) { return line.size() > 3 && line[3].Is("(") && !line[3].space_before; }

// Whether no macros are expanded in the line.
bool IsVerbatim(const Line& line) {
  static constexpr std::string_view kNames[] = {"define",   "undef", "ifdef",   "ifndef", "elifdef",
                                                "elifndef", "error", "warning", "pragma", "ident"};
  return line.size() > 1 && std::find(std::begin(kNames), std::end(kNames), line[1].text) != std::end(kNames);
}

// Calls `use` with each preprocessor line, or with the beginning of a very long line.
void ForEachLine(Lexer lexer, const std::function<void(const Line&)>& use) {
  Line line;
  for (Token token; lexer.NextInDirective(token);) {
    if (token.starts_directive && !line.empty()) use(std::exchange(line, {}));
    if (line.size() < kLongLine) line.push_back(token);
  }
  if (!line.empty()) use(line);
}

bool SameText(const Line& a, const Line& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Token& x, const Token& y) {
    return x.text == y.text && x.space_before == y.space_before;
  });
}

bool IsMark(const Token& token) { return token.Is("#if") || token.Is("#else") || token.Is("#endif"); }

// Reads a name between the parentheses: "a.h", <a.h>.
std::optional<Include> ReadName(Tokens tokens) {
  if (tokens.size() == 1) return ReadInclude(tokens);
  if (tokens.size() < 3 || !tokens.front().Is("<") || !tokens.back().Is(">")) return std::nullopt;
  return Include{tokens[1].text, false};
}

// The text between < and >, or between quotes.
std::string PathOf(Tokens tokens, const Include& name) {
  if (tokens.size() == 1) return std::string(name.path);
  std::string path;
  for (const Token& token : tokens.subspan(1, tokens.size() - 2)) path += token.text;
  return path;
}

// The part of `rest` before its closing parenthesis; nullopt if there is none.
std::optional<Tokens> UpToClose(Tokens rest) {
  int depth = 1;
  for (size_t i = 0; i < rest.size(); ++i) {
    depth += rest[i].Is("(") ? 1 : rest[i].Is(")") ? -1 : 0;
    if (depth == 0) return rest.first(i);
  }
  return std::nullopt;
}

// The possible names: the pieces between the marks of a macro with several meanings.
std::vector<Tokens> Choices(Tokens tokens) {
  std::vector<Tokens> choices;
  size_t begin = 0;
  for (size_t i = 0; i <= tokens.size(); ++i) {
    if (i < tokens.size() && !IsMark(tokens[i])) continue;
    if (i > begin) choices.push_back(tokens.subspan(begin, i - begin));
    begin = i + 1;
  }
  return choices;
}

// Checks the questions of one translation unit.
class Questions {
 public:
  Questions(const std::vector<TextView>& texts, const QuestionRules& rules) : rules_(rules) {
    for (const TextView& text : texts) {
      for (const std::string_view reading : Readings(text.text, storage_)) Add(text.label, reading);
    }
  }

  absl::Status Check() {
    const bool gathered = Gather();
    if (lines_.empty()) return absl::OkStatus();
    if (!gathered || !DefineMacros()) return Refuse(lines_.front(), "__has_include", kComputed);
    for (const Found& found : lines_) {
      if (!IsVerbatim(found.tokens)) KERNIX_RETURN_IF_ERROR(CheckLine(found));
    }
    return absl::OkStatus();
  }

 private:
  // Before C++11, and in text that an #if excludes, R"( begins no raw string: the text after it is code.
  void Add(std::string_view label, std::string_view text) {
    const bool cuts_word = CutsWord(text);
    texts_.push_back({label, text, cuts_word});
    const bool may_ask = cuts_word || MayHoldQuestion(text);
    if (may_ask && (text.find("R\"") != std::string_view::npos || text.find("R\\") != std::string_view::npos)) {
      texts_.push_back({label, text, cuts_word, /*raw_strings=*/false});
    }
  }

  struct Reading {
    std::string_view label;
    std::string_view text;
    bool cuts_word = false;
    bool raw_strings = true;
  };

  struct Found {
    std::string_view label;
    Line tokens;
  };

  static absl::Status Refuse(const Found& found, std::string_view what, std::string_view why) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat(found.label, ":", found.tokens.front().line, ": ", what, ": ", why));
  }

  // Finds the relevant lines: those with a word that asks, and the definitions of the macros that these use. False if
  // the chain is too long.
  bool Gather() {
    asking_.insert(std::begin(kQuestions), std::end(kQuestions));
    for (int round = 0; round < kMaxRounds; ++round) {
      const size_t known = asking_.size() + leaned_on_.size();
      lines_.clear();
      for (const Reading& text : texts_) {
        if (text.cuts_word || Matters(text.text)) GatherFrom(text);
      }
      if (asking_.size() + leaned_on_.size() == known) return true;
    }
    return false;
  }

  // Looks at each word once, however many names there are.
  bool Matters(std::string_view text) const {
    if (leaned_on_.empty() && asking_.size() == std::size(kQuestions) && !MayHoldQuestion(text)) return false;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && IsIdentifierPart(text[end])) ++end;
      const std::string_view word = text.substr(at, end - at);
      if (!word.empty() && (IsAsking(word) || (leaned_on_.contains(word) && FollowsDefine(text, at)))) return true;
      at = std::max(end, at + 1);
    }
    return false;
  }

  bool IsAsking(std::string_view word) const { return asking_.contains(word) || LooksLikeQuestion(word); }

  void GatherFrom(const Reading& text) {
    ForEachLine(Lexer(text.text, storage_, {.raw_strings = text.raw_strings}), [&](const Line& line) {
      const Token* defined = DefinedName(line);
      if (defined != nullptr && AsksForHeader(defined->text)) return;  // a fallback for compilers that lack it
      const bool asks = Asks(line);
      NoteTested(line);
      const bool is_leaned_on = defined != nullptr && leaned_on_.contains(defined->text);
      if (!asks && !is_leaned_on) return;
      if (defined != nullptr && asks) asking_.insert(defined->text);
      if (defined != nullptr) NoteNames(Tokens(line).subspan(3));
      if (defined == nullptr && !IsVerbatim(line)) NoteArguments(line);
      lines_.push_back({text.label, line});
    });
  }

  bool Asks(const Line& line) const {
    return std::any_of(line.begin(), line.end(),
                       [&](const Token& token) { return token.IsIdentifier() && IsAsking(token.text); });
  }

  // Notes names in `#ifdef NAME` and `defined(NAME)`: if NAME is not a macro, the question is not asked.
  void NoteTested(Tokens line) {
    for (size_t i = 2; i < line.size(); ++i) {
      const bool tested = (i == 2 && line[1].Is("ifdef")) || IsTested(line.first(i));
      if (tested && leaned_on_.contains(line[i].text)) tested_.insert(line[i].text);
    }
  }

  void NoteNames(Tokens tokens) {
    for (const Token& token : tokens) {
      if (token.IsIdentifier() && !asking_.contains(token.text)) leaned_on_.insert(token.text);
    }
  }

  // Notes the names in the argument of a question, except those that a compiler takes literally: __has_include(<a.h>).
  void NoteArguments(Tokens line) {
    for (size_t i = 0; i + 2 < line.size(); ++i) {
      if (!line[i].IsIdentifier() || !IsAsking(line[i].text) || !line[i + 1].Is("(")) continue;
      if (AsksForHeader(line[i].text) && line[i + 2].text.starts_with('<')) continue;
      size_t end = i + 2;
      for (int depth = 1; end < line.size() && depth > 0; ++end)
        depth += line[end].Is("(") ? 1 : line[end].Is(")") ? -1 : 0;
      NoteNames(line.subspan(i + 2, end - i - 2));
    }
  }

  // False if a macro has more meanings than we examine.
  bool DefineMacros() {
    for (const Found& found : lines_) {
      const Token* name = DefinedName(found.tokens);
      if (name == nullptr || (IsReserved(name->text) && !asking_.contains(name->text))) continue;
      std::vector<const Line*>& known = definitions_[name->text];
      const auto same = [&](const Line* line) { return SameText(*line, found.tokens); };
      if (std::any_of(known.begin(), known.end(), same)) continue;
      known.push_back(&found.tokens);
      if (known.size() > MacroTable::kMaxChoices || found.tokens.size() >= kLongLine) return false;
    }
    for (const auto& [name, lines] : definitions_) {  // each of several definitions may apply
      for (const Line* line : lines) macros_.Define(Tokens(*line).subspan(2), /*certain=*/lines.size() == 1);
    }
    return true;
  }

  absl::Status CheckLine(const Found& found) {
    std::vector<Token> expanded;
    macros_.Expand(found.tokens, expanded);
    if (macros_.IsCut() || found.tokens.size() >= kLongLine) return Refuse(found, "__has_include", kComputed);
    for (size_t i = 0; i < expanded.size(); ++i) {
      if (!IsFunction(expanded[i]) || IsTested(Tokens(expanded).first(i))) continue;
      const bool asks = i + 1 < expanded.size() && expanded[i + 1].Is("(");
      if (!asks && !asking_.contains(expanded[i].text)) continue;   // #if HAS_INCLUDE_X
      if (!asks) return Refuse(found, "__has_include", kComputed);  // another macro supplies its argument
      const bool known = AsksForHeader(expanded[i].text) || !definitions_.contains(expanded[i].text);
      if (known) KERNIX_RETURN_IF_ERROR(CheckQuestion(found, Tokens(expanded).subspan(i + 2)));
    }
    return absl::OkStatus();
  }

  // Whether the token is a word that takes a file's name.
  bool IsFunction(const Token& token) const {
    if (!token.IsIdentifier()) return false;
    if (AsksForHeader(token.text)) return true;
    if (LooksLikeQuestion(token.text) && !definitions_.contains(token.text)) return true;
    const auto macro = definitions_.find(token.text);
    if (macro == definitions_.end() || !asking_.contains(token.text)) return false;
    return std::any_of(macro->second.begin(), macro->second.end(),
                       [](const Line* line) { return TakesArguments(*line); });
  }

  // True after `defined NAME`, `defined(NAME)`.
  static bool IsTested(Tokens before) {
    if (!before.empty() && before.back().Is("(")) before.remove_suffix(1);
    return !before.empty() && before.back().Is("defined");
  }

  // `rest` begins after the opening parenthesis.
  absl::Status CheckQuestion(const Found& found, Tokens rest) const {
    const std::optional<Tokens> name = UpToClose(rest);
    if (!name) return Refuse(found, "__has_include", kComputed);
    for (const Tokens choice : Choices(*name)) KERNIX_RETURN_IF_ERROR(CheckName(found, choice));
    return absl::OkStatus();
  }

  absl::Status CheckName(const Found& found, Tokens tokens) const {
    const std::optional<Include> name = ReadName(tokens);
    if (!name) return MayPass(tokens) ? absl::OkStatus() : Refuse(found, "__has_include", kComputed);
    const std::string path = PathOf(tokens, *name);
    const std::string normal = NormalizePath(path);
    if (!path.starts_with('/') && normal != ".." && !normal.starts_with("../")) return absl::OkStatus();
    const std::string why = rules_.outside(found.label, {path, name->quoted});
    return why.empty() ? absl::OkStatus() : Refuse(found, StrCat("__has_include ", path), why);
  }

  // Accepts a name that is not known to be a macro: if another text defines it, its definition is checked there.
  bool MayPass(Tokens tokens) const {
    if (tokens.size() != 1 || !tokens[0].IsIdentifier()) return false;
    const std::string_view name = tokens[0].text;
    return !rules_.all_texts || definitions_.contains(name) || (tested_.contains(name) && !IsReserved(name));
  }

  const QuestionRules& rules_;
  std::deque<std::string> storage_;
  std::vector<Reading> texts_;
  std::set<std::string_view> asking_;     // words that ask: the compiler's, and macros that contain one of these
  std::set<std::string_view> leaned_on_;  // names in questions that may be macros
  std::set<std::string_view> tested_;     // those among them that an #if tests first
  std::vector<Found> lines_;
  absl::flat_hash_map<std::string_view, std::vector<const Line*>> definitions_;
  MacroBudget budget_;
  MacroTable macros_{storage_, budget_};
};

}  // namespace

absl::Status CheckFileQuestions(const std::vector<TextView>& texts, const QuestionRules& rules) {
  return Questions(texts, rules).Check();
}

}  // namespace kernix::language
