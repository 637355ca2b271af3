// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/preprocessor.h"

#include <optional>
#include <utility>

namespace kernix::language {
namespace {

using Tokens = absl::Span<const Token>;

// Whether `include` may name one of the user's headers.
bool IsUserHeader(const Include& include) { return include.quoted && !include.path.starts_with("brainevent/"); }

// The conditionals around a position in the text.
class Conditionals {
 public:
  // Whether the text here may be compiled, and whether it always is.
  bool Live() const { return open_.empty() || open_.back().live; }
  bool Certain() const { return open_.empty() || open_.back().certain; }

  // `condition` is the known value of the condition; true for `#else`. These functions return the mark that begins the
  // branch or ends the conditional, or "" for a branch that is certain or not live.
  std::string_view If(std::optional<bool> condition) {
    open_.push_back({Live(), Certain()});
    return Begin(open_.back(), condition);
  }
  std::string_view Else(std::optional<bool> condition) { return open_.empty() ? "" : Begin(open_.back(), condition); }
  std::string_view End() {
    const bool marked = !open_.empty() && open_.back().marked;
    if (!open_.empty()) open_.pop_back();
    return marked ? "#endif" : "";
  }

 private:
  struct Open {
    bool live_around;
    bool certain_around;
    bool live = false;     // its current branch
    bool certain = false;  // its current branch, too
    bool begun = false;    // an earlier or the current branch may be compiled
    bool decided = false;  // no later branch can be compiled
    bool marked = false;
  };

  static std::string_view Begin(Open& open, std::optional<bool> condition) {
    const bool sure = condition == true && !open.begun;
    open.live = open.live_around && !open.decided && condition != false;
    open.certain = open.certain_around && sure;
    open.begun = open.begun || condition != false;
    open.decided = open.decided || condition == true;
    if (!open.live || sure) return "";
    return std::exchange(open.marked, true) ? "#else" : "#if";
  }

  std::vector<Open> open_;
};

class Preprocessor {
 public:
  Preprocessor(Preprocessed& result, MacroBudget& budget) : result_(result), macros_(result.storage, budget) {}

  void Add(const LexedSource& source) {
    const Tokens tokens = source.tokens;
    size_t comment = 0;
    for (size_t i = 0; i < tokens.size();) {
      const size_t end = EndOfRun(tokens, i);
      const Tokens run = tokens.subspan(i, end - i);
      comment = AddComments(source, comment, i);
      if (run[0].starts_directive) {
        Directive(run, tokens.subspan(end));
      } else if (conditionals_.Live()) {
        macros_.Expand(run, result_.tokens);
      }
      i = end;
    }
    AddComments(source, comment, tokens.size());
  }

 private:
  // The end of one directive, or of everything up to the next one.
  static size_t EndOfRun(Tokens tokens, size_t begin) {
    size_t end = begin + 1;
    while (end < tokens.size() && !tokens[end].starts_directive &&
           tokens[end].in_directive == tokens[begin].in_directive)
      ++end;
    return end;
  }

  // Takes the comments from `comment` up to the token `until`. All text between two directives is either live or dead.
  size_t AddComments(const LexedSource& source, size_t comment, size_t until) {
    for (; comment < source.comments.size() && source.comments[comment].next_token <= until; ++comment) {
      const LineComment& line = source.comments[comment];
      if (conditionals_.Live()) result_.comments.push_back({line.text, source.source, line.line});
    }
    return comment;
  }

  // `after` is the text after the line.
  void Directive(Tokens line, Tokens after) {
    if (line.size() < 2) return;
    const std::string_view name = line[1].text;
    const Tokens rest = line.subspan(2);
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      AddMark(conditionals_.If(Condition(name, rest, after)), line[0]);
    } else if (name == "else" || name == "elif" || name == "elifdef" || name == "elifndef") {
      AddMark(conditionals_.Else(name == "else" ? true : Condition(name.substr(2), rest, after)), line[0]);
    } else if (name == "endif") {
      AddMark(conditionals_.End(), line[0]);
    } else if (conditionals_.Live()) {
      Definition(name, rest);
    }
  }

  // The known value of the condition of an #if, #ifdef or #ifndef.
  std::optional<bool> Condition(std::string_view kind, Tokens rest, Tokens after) {
    if (kind != "if") return rest.empty() ? std::nullopt : Defined(rest[0].text, kind == "ifdef", after);
    const bool negated = !rest.empty() && rest[0].Is("!");
    const Tokens test = rest.subspan(negated ? 1 : 0);
    if (test.empty() || !test[0].Is("defined")) return Constant(rest);
    const bool brackets = test.size() == 4 && test[1].Is("(") && test[3].Is(")");
    if (test.size() != 2 && !brackets) return std::nullopt;
    return Defined(test[brackets ? 2 : 1].text, !negated, after);
  }

  // Whether `name` is defined (or, unless `wanted`, is not). An unknown name may come from a header or from the
  // compiler, unless it is an include guard or has a default (`#ifndef X`, `#define X ...`).
  std::optional<bool> Defined(std::string_view name, bool wanted, Tokens after) const {
    if (macros_.IsDefined(name)) return wanted;
    const bool defines =
        after.size() > 2 && after[0].starts_directive && after[1].Is("define") && after[2].text == name;
    const bool guard = defines && (after.size() == 3 || !after[3].in_directive || after[3].starts_directive);
    if (!wanted && (guard || (defines && !result_.includes_user_headers))) return true;
    return std::nullopt;
  }

  // The values 0, 1, false and true, and macros that certainly expand to one of them.
  std::optional<bool> Constant(Tokens condition) {
    std::vector<Token> value;
    if (condition.size() == 1) macros_.Expand(condition, value);
    if (value.size() != 1) return std::nullopt;
    if (value[0].Is("0") || value[0].Is("false")) return false;
    if (value[0].Is("1") || value[0].Is("true")) return true;
    return std::nullopt;
  }

  void Definition(std::string_view name, Tokens rest) {
    if (name == "define") macros_.Define(rest, conditionals_.Certain());
    if (name == "undef" && !rest.empty()) macros_.Undefine(rest[0].text, conditionals_.Certain());
    if (name != "include" && name != "include_next" && name != "import") return;
    const std::optional<Include> include = ReadInclude(rest);
    result_.includes_user_headers |= !include.has_value() || IsUserHeader(*include);
  }

  void AddMark(std::string_view text, const Token& at) {
    if (!text.empty()) result_.tokens.push_back(Mark(text, at));
  }

  Preprocessed& result_;
  Conditionals conditionals_;
  MacroTable macros_;
};

}  // namespace

std::optional<Include> ReadInclude(Tokens rest) {
  if (rest.empty() || rest[0].text.size() <= 2) return std::nullopt;
  const std::string_view text = rest[0].text;
  const bool angled = rest[0].kind == TokenKind::kHeaderName;
  if (!angled && !(text.front() == '"' && text.back() == '"')) return std::nullopt;
  return Include{text.substr(1, text.size() - 2), !angled};
}

Preprocessed Preprocess(const std::vector<LexedSource>& sources, MacroBudget& budget) {
  Preprocessed result;
  Preprocessor preprocessor(result, budget);
  for (const LexedSource& source : sources) {
    preprocessor.Add(source);
    result.spliced.push_back(source.storage);
    result.has_text = result.has_text || !source.tokens.empty();
  }
  return result;
}

}  // namespace kernix::language
