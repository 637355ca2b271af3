// SPDX-License-Identifier: Apache-2.0
//
// ChooseRuntime(): reads the texts of a unit.
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

using Takes = RuntimeNames::Takes;
using Tokens = absl::Span<const Token>;
using Kind = UnitText::Kind;
using KindOf = std::function<std::optional<Kind>(std::string_view)>;

constexpr size_t kMostTokensAtOnce = 4096;

// Language features that use names of the library without saying them.
constexpr std::string_view kTypeInfo = "type_info";
constexpr std::string_view kCoroutines = "coroutine_traits";
constexpr std::string_view kOrdering = "strong_ordering";
constexpr std::string_view kList = "initializer_list";

// kernix's own headers call these with a `const void*`, which fits the runtime API's function better than the template
// of the same name that the whole header has.
constexpr std::string_view kCalledByKernix[] = {"cudaFuncGetAttributes", "cudaFuncSetAttribute"};

// Finds out whether a macro that makes names may decide a condition: such a name stands in no preprocessed text.
class Pastes {
 public:
  // `line`: a preprocessor line.
  void Read(Tokens line) {
    if (line.size() < 3) return;
    if (line[1].Is("if") || line[1].Is("elif")) {
      for (const Token& token : line.subspan(2)) {
        if (token.IsIdentifier()) tested_.emplace(token.text);
      }
    }
    if (line[1].Is("define")) ReadDefinition(line.subspan(2));
  }

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
    std::set<std::string> words;  // of its parameters and its body
  };

  static bool IsWord(const Token& token) { return token.IsIdentifier() || token.kind == TokenKind::kNumber; }

  // `line` begins with the macro's name.
  void ReadDefinition(Tokens line) {
    Macro& macro = macros_[std::string(line[0].text)];
    for (size_t at = 1; at < line.size(); ++at) {
      if (line[at].IsIdentifier()) macro.words.emplace(line[at].text);
      const bool pastes = line[at].Is("##") && at + 1 < line.size();
      if (pastes && IsWord(line[at - 1]) && IsWord(line[at + 1])) macro.pastes = true;  // not `, ## __VA_ARGS__`
    }
  }

  std::set<std::string> tested_;
  std::map<std::string, Macro, std::less<>> macros_;
};

class UnitReader {
 public:
  explicit UnitReader(const RuntimeNames& names) : names_(names) {}

  RuntimeChoice Choose(const UnitTexts& texts) {
    reads_declared_ = texts.preprocessed.empty();
    for (const UnitText& text : texts.written) {
      kind_ = text.kind;
      ReadWritten(text.text);
    }
    is_preprocessed_ = reads_declared_ = true;
    for (std::string_view text : texts.preprocessed) ReadPreprocessed(text, texts.kind_of);
    if (!texts.preprocessed.empty() && pastes_.MayDecide()) need_ |= RuntimeNames::kWhole;
    if (opens_std_) need_ |= unqualified_;
    if (has_std_) need_ |= called_;
    RuntimeChoice choice;
    choice.full = (need_ & RuntimeNames::kWhole) != 0;
    choice.parts = RuntimeParts::FromBits(need_ & ~RuntimeNames::kWhole) | names_.needed();
    choice.has_std = has_std_;
    return choice;
  }

 private:
  static bool Is(Tokens tokens, size_t at, std::string_view text) { return at < tokens.size() && tokens[at].Is(text); }

  void ReadWritten(std::string_view text) {
    if (HasTrigraphs(text)) need_ |= RuntimeNames::kWhole;
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
      if (kind_ == Kind::kUser || kind_ == Kind::kKernix) pastes_.Read(line);
    } else if (line.size() > 2 && line[1].kind == TokenKind::kNumber && line[2].text.size() > 2) {
      kind_ = (*kind_of_)(line[2].text.substr(1, line[2].text.size() - 2));
    }
  }

  void ReadName(Tokens tokens, size_t at) {
    const Token& token = tokens[at];
    const Takes takes = Find(token.text);
    need_ |= takes.macro;
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
    if (in_std) {
      need_ |= takes.std;
      return;
    }
    need_ |= takes.global;
    unqualified_ |= takes.std;
    if (!qualified && MayBeCalled(tokens, at)) called_ |= takes.std;
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
    if (token.Is("typeid")) UseHidden(kTypeInfo);
    if (token.Is("co_await") || token.Is("co_yield") || token.Is("co_return")) UseHidden(kCoroutines);
    if (token.Is("auto")) auto_line_ = token.line;
    if (token.Is("for") && Is(tokens, at + 1, "(")) for_follows_ = true;
  }

  void UseHidden(std::string_view name) {
    const Takes takes = names_.Find(name);
    need_ |= takes.global | takes.std;
  }

  // `<=>`; `= {` after `auto x`; `: {` in a for.
  void ReadPunctuator(Tokens tokens, size_t at) {
    const Token& token = tokens[at];
    if (token.Is("(")) parentheses_.push_back(std::exchange(for_follows_, false));
    if (token.Is(")") && !parentheses_.empty()) parentheses_.pop_back();
    if (at < 2) return;
    const Token& before = tokens[at - 1];
    const bool is_joined = !token.space_before && !before.space_before;
    if (token.Is(">") && before.Is("=") && tokens[at - 2].Is("<") && is_joined) UseHidden(kOrdering);
    const bool in_for = before.Is(":") && !parentheses_.empty() && parentheses_.back();
    const bool in_auto = before.Is("=") && auto_line_ == token.line;
    if (token.Is("{") && (in_for || in_auto)) UseHidden(kList);
  }

  const RuntimeNames& names_;
  uint32_t need_ = 0;         // what names have been found to take
  uint32_t unqualified_ = 0;  // what names of std take that stand alone
  uint32_t called_ = 0;       // what those of them take that may be called
  Pastes pastes_;
  bool opens_std_ = false;  // some text can use names of std as if they were its own
  bool has_std_ = false;    // some text of a user can have objects of types of std

  // Of the text that is read.
  bool is_preprocessed_ = false;
  bool reads_declared_ = false;
  const KindOf* kind_of_ = nullptr;
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
