// SPDX-License-Identifier: Apache-2.0
//
// ChooseRuntime(): reads the texts of a unit.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/types/span.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

using Takes = RuntimeNames::Takes;
using Tokens = absl::Span<const Token>;
using Kind = UnitText::Kind;
using KindOf = std::function<std::optional<Kind>(std::string_view)>;

constexpr size_t kMostPatterns = 4096;
constexpr size_t kMostTokensAtOnce = 4096;

// Language features that use names of the library without saying them.
constexpr std::string_view kTypeInfo = "type_info";
constexpr std::string_view kCoroutines = "coroutine_traits";
constexpr std::string_view kOrdering = "strong_ordering";
constexpr std::string_view kList = "initializer_list";

// kernix's own headers call these with a `const void*`, which fits the runtime API's function better than the template
// of the same name that the whole header has.
constexpr std::string_view kCalledByKernix[] = {"cudaFuncGetAttributes", "cudaFuncSetAttribute"};

// What names have been found to take, and where the first stands that takes the whole header.
struct Need {
  uint32_t bits = 0;
  std::string where;

  // `place` makes the text of the place.
  template <typename Place>
  void Add(uint32_t takes, const Place& place) {
    if ((takes & RuntimeNames::kWhole) != 0 && where.empty()) where = place();
    bits |= takes;
  }
  void Add(const Need& other) {
    Add(other.bits, [&] { return other.where; });
  }
};

// The definitions of macros that make names, and where such a macro may decide a condition.
class Pastes {
 public:
  // The parts of a name that a macro makes, before and after the pieces that `##` puts between.
  struct Pattern {
    std::string prefix;
    std::string suffix;
    std::string place;
    bool operator<(const Pattern& other) const {
      return std::tie(prefix, suffix) < std::tie(other.prefix, other.suffix);
    }
  };

  // `line`: a preprocessor line.
  void Read(Tokens line, std::string_view label) {
    if (line.size() < 3) return;
    if (line[1].Is("if") || line[1].Is("elif")) {
      for (const Token& token : line.subspan(2)) {
        if (token.IsIdentifier()) tested_.emplace(token.text);
      }
    }
    if (line[1].Is("define")) ReadDefinition(line.subspan(2), label);
  }

  const std::set<Pattern>& patterns() const { return patterns_; }

  // Whether a condition may use a name that a macro has made.
  bool MayDecide() const {
    std::set<std::string, std::less<>> seen;
    std::vector<std::string> open(tested_.begin(), tested_.end());
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      const auto macro = macros_.find(name);
      if (macro == macros_.end() || !seen.insert(name).second) continue;
      if (macro->second.pastes) return true;
      open.insert(open.end(), macro->second.words.begin(), macro->second.words.end());
    }
    return false;
  }

 private:
  struct Macro {
    bool pastes = false;
    std::set<std::string> words;  // of its body
  };

  static bool IsWord(const Token& token) { return token.IsIdentifier() || token.kind == TokenKind::kNumber; }

  // `line` begins with the macro's name.
  void ReadDefinition(Tokens line, std::string_view label) {
    size_t at = 1;
    std::set<std::string_view> parameters;
    if (at < line.size() && line[at].Is("(") && !line[at].space_before) {
      for (; at < line.size() && !line[at].Is(")"); ++at) {
        if (line[at].IsIdentifier()) parameters.insert(line[at].text);
        if (line[at].Is("...")) parameters.insert("__VA_ARGS__");
      }
    }
    Macro& macro = macros_[std::string(line[0].text)];
    for (; at < line.size(); ++at) {
      if (line[at].IsIdentifier() && !parameters.contains(line[at].text)) macro.words.emplace(line[at].text);
      if (at + 1 == line.size() || !line[at + 1].Is("##")) continue;
      macro.pastes = true;
      const size_t begin = at;
      while (at + 2 < line.size() && line[at + 1].Is("##")) at += 2;
      Note(line[begin], line[at], parameters, label);
    }
  }

  void Note(const Token& first, const Token& last, const std::set<std::string_view>& parameters,
            std::string_view label) {
    if (!IsWord(first) || !IsWord(last)) return;  // `, ## __VA_ARGS__`: no name
    Pattern pattern;
    if (!parameters.contains(first.text)) pattern.prefix = first.text;
    if (!parameters.contains(last.text)) pattern.suffix = last.text;
    pattern.place = StrCat(label, ":", first.line, ": a name that ## makes of ", first.text, " and ", last.text);
    if (patterns_.size() >= kMostPatterns) pattern.prefix = pattern.suffix = "";  // any name
    patterns_.insert(pattern);
  }

  std::set<Pattern> patterns_;
  std::set<std::string> tested_;
  std::map<std::string, Macro, std::less<>> macros_;
};

class UnitReader {
 public:
  explicit UnitReader(const RuntimeNames& names) : names_(names) {}

  RuntimeChoice Choose(const UnitTexts& texts) {
    reads_declared_ = texts.preprocessed.empty();
    for (const UnitText& text : texts.written) {
      label_ = text.label;
      kind_ = text.kind;
      ReadWritten(text.text);
    }
    is_preprocessed_ = reads_declared_ = true;
    for (std::string_view text : texts.preprocessed) ReadPreprocessed(text, texts.kind_of);
    if (!texts.preprocessed.empty()) AddPatterns();
    if (opens_std_) need_.Add(unqualified_);
    if (has_std_) need_.Add(called_);
    RuntimeChoice choice;
    choice.full = (need_.bits & RuntimeNames::kWhole) != 0;
    choice.why = choice.full ? need_.where : "";
    choice.parts = RuntimeParts::FromBits(need_.bits & ~RuntimeNames::kWhole) | names_.needed();
    choice.has_std = has_std_;
    return choice;
  }

 private:
  static bool Is(Tokens tokens, size_t at, std::string_view text) { return at < tokens.size() && tokens[at].Is(text); }

  std::string Place(int line, std::string_view what) const {
    return StrCat(label_, ":", line + line_offset_, ": ", what);
  }

  void ReadWritten(std::string_view text) {
    if (HasTrigraphs(text)) need_.Add(RuntimeNames::kWhole, [&] { return Place(1, "trigraphs"); });
    ReadTokens(text);
    EndOfLine();
  }

  // Reads the pieces that do not come from the stand-in: each begins with a line that names its file.
  void ReadPreprocessed(std::string_view text, const KindOf& kind_of) {
    kind_of_ = &kind_of;
    for (size_t at = 0; at < text.size();) {
      kind_ = KindOfLine(text.substr(at, text.find('\n', at) - at));
      at = kind_ ? at + ReadTokens(text.substr(at)) : AfterLine(text, at);
    }
    EndOfLine();
  }

  static size_t AfterLine(std::string_view text, size_t at) {
    return std::min(text.find('\n', at), text.size() - 1) + 1;
  }

  // The kind of the file that `# 12 "file"` names; nullopt for other lines.
  std::optional<Kind> KindOfLine(std::string_view line) const {
    if (!line.starts_with("# ")) return std::nullopt;
    const size_t begin = line.find('"');
    const size_t end = line.rfind('"');
    if (begin == end) return std::nullopt;
    return (*kind_of_)(line.substr(begin + 1, end - begin - 1));
  }

  // Reads up to the end, or to where text of the stand-in begins. Returns the offset. Keeps a few thousand tokens at a
  // time: a token is read when the next one is known.
  size_t ReadTokens(std::string_view text) {
    parentheses_.clear();
    std::deque<std::string> storage;
    Lexer lexer(text, storage);
    std::vector<Token> tokens;
    for (Token token; lexer.Next(token);) {
      if (tokens.size() == kMostTokensAtOnce) tokens.erase(tokens.begin(), tokens.end() - 4);
      tokens.push_back(token);
      if (tokens.size() > 1) ReadToken(tokens, tokens.size() - 2);
      if (!kind_) return static_cast<size_t>(token.text.data() - text.data());
    }
    if (!tokens.empty()) ReadToken(tokens, tokens.size() - 1);
    return text.size();
  }

  static bool HasTrigraphs(std::string_view text) {
    return HasText(text, "\?\?=") || HasText(text, "\?\?/");  // '#' and a backslash
  }

  void ReadToken(Tokens tokens, size_t at) {
    const Token& token = tokens[at];
    if (token.starts_directive || !token.in_directive) EndOfLine();
    if (token.in_directive) line_.push_back(token);
    if (is_preprocessed_ && (token.in_directive || !kind_)) return;
    if (token.IsIdentifier()) {
      ReadName(tokens, at);
    } else if (reads_declared_) {
      ReadPunctuator(tokens, at);
    }
  }

  void EndOfLine() {
    if (line_.empty()) return;
    const std::vector<Token> line = std::exchange(line_, {});
    if (!is_preprocessed_) {
      if (kind_ == Kind::kUser || kind_ == Kind::kKernix) pastes_.Read(line, label_);
    } else if (line.size() > 2 && line[1].kind == TokenKind::kNumber && line[2].text.size() > 2) {
      label_ = line[2].text.substr(1, line[2].text.size() - 2);
      kind_ = (*kind_of_)(label_);
      line_offset_ = std::atoi(std::string(line[1].text).c_str()) - line[1].line - 1;
    }
  }

  void ReadName(Tokens tokens, size_t at) {
    const Token& token = tokens[at];
    const Takes takes = Find(token.text);
    if (takes.macro != 0) need_.Add(takes.macro, [&] { return Place(token.line, token.text); });
    if (reads_declared_) ReadDeclared(tokens, at, takes);
  }

  void ReadDeclared(Tokens tokens, size_t at, const Takes& takes) {
    const Token& token = tokens[at];
    ReadKeyword(tokens, at);
    const bool qualified = at > 0 && tokens[at - 1].Is("::");
    const bool after_name = qualified && at > 1 && IsPlainName(tokens[at - 2]);
    const bool in_std = after_name && chain_is_std_;
    // `A::name`. A space before the `::` may mean that it begins the name.
    const bool in_other = after_name && !in_std && !tokens[at - 1].space_before;
    chain_is_std_ = IsLibrary(token.text) ? !after_name || in_std : in_std;
    if (IsLibrary(token.text) && kind_ != Kind::kLibrary) NoteStd(tokens, at);
    if ((takes.global | takes.std) == 0 || IsMember(tokens, at) || in_other) return;
    const auto place = [&] { return Place(token.line, in_std ? StrCat("std::", token.text) : token.text); };
    if (in_std) return need_.Add(takes.std, place);
    need_.Add(takes.global, place);
    unqualified_.Add(takes.std, place);
    if (!qualified && MayBeCalled(tokens, at)) called_.Add(takes.std, place);
  }

  // Not the `return` of `return ::abs(x)`.
  static bool IsPlainName(const Token& token) { return token.IsIdentifier() && !IsKeyword(token.text); }

  // A name's need in this kind of text.
  Takes Find(std::string_view name) const {
    const Takes takes = names_.Find(name);
    if (kind_ == Kind::kLibrary) return {0, takes.redeclared, takes.redeclared, takes.redeclared};
    const auto* end = std::end(kCalledByKernix);
    const bool is_known = kind_ == Kind::kKernix && std::find(std::begin(kCalledByKernix), end, name) != end;
    return is_known ? Takes{} : takes;
  }

  static bool IsLibrary(std::string_view name) { return name == "std" || name == "__gnu_cxx"; }

  // A line of the preprocessor may stand between a name and its parentheses.
  static bool MayBeCalled(Tokens tokens, size_t at) {
    return Is(tokens, at + 1, "(") || Is(tokens, at + 1, "<") ||
           (at + 1 < tokens.size() && tokens[at + 1].in_directive);
  }

  // `x.name`, `x->name`, `x[i]->name`, but not the `-> name` of a function's type.
  static bool IsMember(Tokens tokens, size_t at) {
    if (at > 0 && tokens[at - 1].Is(".")) return true;
    if (at < 2 || !tokens[at - 1].Is("->")) return false;
    return IsPlainName(tokens[at - 2]) || tokens[at - 2].Is("this") || tokens[at - 2].Is("]");
  }

  // Without `::` behind it, `std` is opened, or gets another name.
  void NoteStd(Tokens tokens, size_t at) {
    if (kind_ != Kind::kKernix) has_std_ = true;
    if (!Is(tokens, at + 1, "::")) opens_std_ = true;
  }

  void ReadKeyword(Tokens tokens, size_t at) {
    const Token& token = tokens[at];
    if (token.Is("typeid")) UseHidden(kTypeInfo, token);
    if (token.Is("co_await") || token.Is("co_yield") || token.Is("co_return")) UseHidden(kCoroutines, token);
    if (token.Is("auto")) auto_line_ = token.line;
    if (token.Is("for") && Is(tokens, at + 1, "(")) for_follows_ = true;
  }

  void UseHidden(std::string_view name, const Token& token) {
    const Takes takes = names_.Find(name);
    need_.Add(takes.global | takes.std,
              [&] { return Place(token.line, StrCat("std::", name, ", which is not named")); });
  }

  // `<=>`; `= {` after `auto x`; `: {` in a for.
  void ReadPunctuator(Tokens tokens, size_t at) {
    const Token& token = tokens[at];
    if (token.Is("(")) parentheses_.push_back(std::exchange(for_follows_, false));
    if (token.Is(")") && !parentheses_.empty()) parentheses_.pop_back();
    if (at < 2) return;
    const Token& before = tokens[at - 1];
    const bool is_joined = !token.space_before && !before.space_before;
    if (token.Is(">") && before.Is("=") && tokens[at - 2].Is("<") && is_joined) UseHidden(kOrdering, token);
    const bool in_for = before.Is(":") && !parentheses_.empty() && parentheses_.back();
    const bool in_auto = before.Is("=") && auto_line_ == token.line;
    if (token.Is("{") && (in_for || in_auto)) UseHidden(kList, token);
  }

  // The names that macros made stand in the preprocessed text, except those in conditions.
  void AddPatterns() {
    if (!pastes_.MayDecide()) return;
    const std::map<std::string_view, Takes> table(names_.table().begin(), names_.table().end());
    for (const Pastes::Pattern& pattern : pastes_.patterns()) {
      const auto fits = [&](std::string_view name) {
        return name.size() >= pattern.prefix.size() + pattern.suffix.size() && name.ends_with(pattern.suffix);
      };
      for (auto at = table.lower_bound(pattern.prefix); at != table.end() && at->first.starts_with(pattern.prefix);
           ++at) {
        if (fits(at->first)) need_.Add(at->second.macro, [&] { return pattern.place; });
      }
    }
  }

  const RuntimeNames& names_;
  Need need_;
  Need unqualified_;  // names of std that stand alone
  Need called_;       // those of them that may be called
  Pastes pastes_;
  bool opens_std_ = false;  // some text can use names of std as if they were its own
  bool has_std_ = false;    // some text of a user can have objects of types of std

  // Of the text that is read.
  bool is_preprocessed_ = false;
  bool reads_declared_ = false;
  const KindOf* kind_of_ = nullptr;
  std::string label_;
  int line_offset_ = 0;  // from a token's line to that of its file
  std::optional<Kind> kind_;
  std::vector<Token> line_;
  std::vector<bool> parentheses_;  // those that are open: whether they are of a `for`
  bool for_follows_ = false;
  int auto_line_ = 0;
  bool chain_is_std_ = false;  // whether the last name is `std`, or in it
};

}  // namespace

RuntimeChoice ChooseRuntime(const RuntimeNames& names, const UnitTexts& texts) {
  return UnitReader(names).Choose(texts);
}

}  // namespace kernix::language
