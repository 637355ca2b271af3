// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/file_questions.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "daemon/base/error.h"
#include "daemon/base/paths.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/codegen/branches.h"
#include "daemon/codegen/lexer.h"
#include "daemon/codegen/macro_table.h"
#include "daemon/codegen/spliced_text.h"

namespace kernix::codegen {
namespace {

using Tokens = absl::Span<const Token>;
using Line = std::vector<Token>;

constexpr std::string_view kQuestions[] = {"__has_include", "__has_include_next"};
// Macros that stand for macros that stand for macros ... that ask: nobody writes so many.
constexpr int kMaxRounds = 16;
constexpr size_t kLongLine = 100'000;
constexpr char kComputed[] =
    "kernix cannot tell which file this asks for, and so not notice when the answer changes. Ask for a name in quotes "
    "or in <>, or pass -D with the answer";

bool IsQuestion(std::string_view name) {
  return std::find(std::begin(kQuestions), std::end(kQuestions), name) != std::end(kQuestions);
}

bool HoldsWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsIdentifierPart(text[at - 1]);
    if (begins && (end == text.size() || !IsIdentifierPart(text[end]))) return true;
  }
  return false;
}

// Whether `#define word` may be in `text`. A glance: true also where a comment stands before the word.
bool MayDefine(std::string_view text, std::string_view word) {
  constexpr std::string_view kDefine = "define";
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t before = at == 0 ? std::string_view::npos : text.find_last_not_of(" \t\v\f\r", at - 1);
    if (before == std::string_view::npos) continue;
    const std::string_view left = text.substr(0, before + 1);
    if (left.ends_with(kDefine) || left.ends_with("*/") || left.ends_with("\\\n")) return true;
  }
  return false;
}

// "[prefix] define NAME": the name's token.
const Token* DefinedName(const Line& line) {
  return line.size() > 2 && line[1].Is("define") && line[2].IsIdentifier() ? &line[2] : nullptr;
}

// Of "[prefix] define NAME(x)".
bool TakesArguments(const Line& line) { return line.size() > 3 && line[3].Is("(") && !line[3].space_before; }

// Lines that expand no macro.
bool IsVerbatim(const Line& line) {
  static constexpr std::string_view kNames[] = {"define",   "undef", "ifdef",   "ifndef", "elifdef",
                                                "elifndef", "error", "warning", "pragma", "ident"};
  return line.size() > 1 && std::find(std::begin(kNames), std::end(kNames), line[1].text) != std::end(kNames);
}

// Calls `use` with each preprocessor line; of one that nobody has written, with its beginning.
void ForEachLine(std::string_view text, const std::function<void(const Line&)>& use) {
  Line line;
  const auto finish = [&] {
    if (!line.empty()) use(line);
    line.clear();
  };
  LexInPieces(text, [&](const std::vector<Token>& tokens, size_t first) {
    const size_t fresh = first == 0 ? 0 : first + 2;  // two are those that ended the piece before
    for (size_t i = fresh; i < tokens.size(); ++i) {
      if (tokens[i].starts_directive || !tokens[i].in_directive) finish();
      if (tokens[i].in_directive && line.size() < kLongLine) line.push_back(tokens[i]);
    }
  });
  finish();
}

bool SameText(const Line& a, const Line& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Token& x, const Token& y) {
    return x.text == y.text && x.space_before == y.space_before;
  });
}

bool IsMark(const Token& token) { return token.Is("#if") || token.Is("#else") || token.Is("#endif"); }

// A name as it stands in parentheses: "a.h", <a.h>.
std::optional<Include> ReadName(Tokens tokens) {
  if (tokens.size() == 1 && tokens[0].kind == TokenKind::kString) return ReadInclude(tokens);
  if (tokens.size() < 3 || !tokens.front().Is("<") || !tokens.back().Is(">")) return std::nullopt;
  return Include{tokens[1].text, false};
}

// The text between < and >, or in quotes.
std::string PathOf(Tokens tokens, const Include& name) {
  if (name.quoted) return WithoutSplices(name.path);
  std::string path;
  for (const Token& token : tokens.subspan(1, tokens.size() - 2)) path += token.text;
  return WithoutSplices(path);
}

// `rest` up to the parenthesis that closes it; nothing when there is none.
std::optional<Tokens> UpToClose(Tokens rest) {
  int depth = 1;
  for (size_t i = 0; i < rest.size(); ++i) {
    depth += rest[i].Is("(") ? 1 : rest[i].Is(")") ? -1 : 0;
    if (depth == 0) return rest.first(i);
  }
  return std::nullopt;
}

// What a name may be: the pieces between the marks of a macro with several meanings.
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

// The questions of one translation unit.
class Questions {
 public:
  Questions(const std::vector<TextView>& texts, const QuestionRules& rules) : rules_(rules) {
    for (const TextView& text : texts) {
      for (const std::string_view spelled : SplicedTexts(text.text, storage_)) texts_.push_back({text.label, spelled});
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
  struct Found {
    std::string_view label;
    Line tokens;
  };

  static absl::Status Refuse(const Found& found, std::string_view what, std::string_view why) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat(found.label, ":", found.tokens.front().line, ": ", what, ": ", why));
  }

  // Finds the lines that matter: those with a word that asks, and the definitions of what these lean on. False when
  // there is no end to it.
  bool Gather() {
    asking_.insert(std::begin(kQuestions), std::end(kQuestions));
    for (int round = 0; round < kMaxRounds; ++round) {
      const size_t known = asking_.size() + leaned_on_.size();
      lines_.clear();
      for (const TextView& text : texts_) {
        if (Matters(text.text)) GatherFrom(text);
      }
      if (asking_.size() + leaned_on_.size() == known) return true;
    }
    return false;
  }

  bool Matters(std::string_view text) const {
    return std::any_of(asking_.begin(), asking_.end(), [&](std::string_view name) { return HoldsWord(text, name); }) ||
           std::any_of(leaned_on_.begin(), leaned_on_.end(),
                       [&](std::string_view name) { return MayDefine(text, name); });
  }

  void GatherFrom(const TextView& text) {
    ForEachLine(text.text, [&](const Line& line) {
      const Token* defined = DefinedName(line);
      if (defined != nullptr && IsQuestion(defined->text)) return;  // for compilers that have none
      const bool asks = Asks(line);
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
                       [&](const Token& token) { return token.IsIdentifier() && asking_.contains(token.text); });
  }

  void NoteNames(Tokens tokens) {
    for (const Token& token : tokens) {
      if (token.IsIdentifier() && !asking_.contains(token.text)) leaned_on_.insert(token.text);
    }
  }

  // The names in what is asked for, but for those that a compiler takes as they are: __has_include(<a.h>).
  void NoteArguments(Tokens line) {
    for (size_t i = 0; i + 2 < line.size(); ++i) {
      if (!line[i].IsIdentifier() || !asking_.contains(line[i].text) || !line[i + 1].Is("(")) continue;
      if (IsQuestion(line[i].text) && line[i + 2].Is("<")) continue;
      size_t end = i + 2;
      for (int depth = 1; end < line.size() && depth > 0; ++end)
        depth += line[end].Is("(") ? 1 : line[end].Is(")") ? -1 : 0;
      NoteNames(line.subspan(i + 2, end - i - 2));
    }
  }

  // False where one has more meanings than are looked at.
  bool DefineMacros() {
    for (const Found& found : lines_) {
      const Token* name = DefinedName(found.tokens);
      if (name == nullptr) continue;
      std::vector<const Line*>& known = definitions_[name->text];
      const auto same = [&](const Line* line) { return SameText(*line, found.tokens); };
      if (std::any_of(known.begin(), known.end(), same)) continue;
      known.push_back(&found.tokens);
      if (known.size() > MacroTable::kMaxChoices || found.tokens.size() >= kLongLine) return false;
    }
    for (const auto& [name, lines] : definitions_) Define(lines);
    return true;
  }

  // Of several, each may be meant.
  void Define(const std::vector<const Line*>& lines) {
    for (const Line* line : lines) {
      if (lines.size() > 1) branches_.If(std::nullopt);
      macros_.Define(Tokens(*line).subspan(2));
      if (lines.size() > 1) branches_.End();
    }
  }

  absl::Status CheckLine(const Found& found) {
    std::vector<Token> expanded;
    macros_.Expand(found.tokens, expanded);
    if (macros_.IsCut() || found.tokens.size() >= kLongLine) return Refuse(found, "__has_include", kComputed);
    for (size_t i = 0; i < expanded.size(); ++i) {
      if (!IsFunction(expanded[i]) || IsTested(Tokens(expanded).first(i))) continue;
      const bool asks = i + 1 < expanded.size() && expanded[i + 1].Is("(");
      if (!asks) return Refuse(found, "__has_include", kComputed);  // another macro gives it what it asks for
      if (IsQuestion(expanded[i].text)) KERNIX_RETURN_IF_ERROR(CheckQuestion(found, Tokens(expanded).subspan(i + 2)));
    }
    return absl::OkStatus();
  }

  // Whether it is a word that takes the name of a file.
  bool IsFunction(const Token& token) const {
    if (!token.IsIdentifier()) return false;
    if (IsQuestion(token.text)) return true;
    const auto macro = definitions_.find(token.text);
    if (macro == definitions_.end() || !asking_.contains(token.text)) return false;
    return std::any_of(macro->second.begin(), macro->second.end(),
                       [](const Line* line) { return TakesArguments(*line); });
  }

  // `defined NAME`, `defined(NAME)`.
  static bool IsTested(Tokens before) {
    if (!before.empty() && before.back().Is("(")) before.remove_suffix(1);
    return !before.empty() && before.back().Is("defined");
  }

  // `rest` follows the parenthesis.
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
    if (!path.starts_with('/') && !NormalizePath(path).starts_with("..")) return absl::OkStatus();
    const std::string why = rules_.outside(found.label, {path, name->quoted});
    return why.empty() ? absl::OkStatus() : Refuse(found, StrCat("__has_include ", path), why);
  }

  // A macro that is none, as far as is known: what it is elsewhere was asked for beside it.
  bool MayPass(Tokens tokens) const {
    return tokens.size() == 1 && tokens[0].IsIdentifier() &&
           (!rules_.all_texts || definitions_.contains(tokens[0].text));
  }

  const QuestionRules& rules_;
  std::deque<std::string> storage_;
  std::vector<TextView> texts_;
  std::set<std::string_view> asking_;     // words that ask: the compiler's, and macros that hold one of these
  std::set<std::string_view> leaned_on_;  // macros, perhaps, that names are made of
  std::vector<Found> lines_;
  absl::flat_hash_map<std::string_view, std::vector<const Line*>> definitions_;
  Branches branches_;
  MacroBudget budget_;
  MacroTable macros_{branches_, storage_, budget_};
};

}  // namespace

absl::Status CheckFileQuestions(const std::vector<TextView>& texts, const QuestionRules& rules) {
  return Questions(texts, rules).Check();
}

}  // namespace kernix::codegen
