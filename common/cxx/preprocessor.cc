// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/preprocessor.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/strings.h"

namespace kernix::language {
namespace {

using Tokens = absl::Span<const Token>;

// --- Macros

// A marker in a token sequence: "#if", "#else" or "#endif".
Token Mark(std::string_view text, const Token& at) { return {TokenKind::kPunctuator, text, at.source, at.line}; }

// If conditionals decide the meaning of a name, a use of it expands to all meanings, each as a branch between marks.
class MacroTable {
 public:
  // The most meanings of one name. A further one replaces the oldest.
  static constexpr size_t kMaxChoices = 8;

  // `storage` receives the text of pasted tokens. `storage` and `budget` must outlive the table.
  MacroTable(std::deque<std::string>& storage, MacroBudget& budget) : storage_(storage), budget_(budget) {}

  // `line` is the text after `#define`. `certain` means that no conditional decides whether the definition is compiled;
  // otherwise, the name keeps its earlier meanings as well.
  void Define(absl::Span<const Token> line, bool certain);
  void Undefine(std::string_view name, bool certain);

  // Whether `name` is a macro here in any branch of the conditionals.
  bool IsDefined(std::string_view name) const;

  // Appends the expansion of `tokens` to `out`.
  void Expand(absl::Span<const Token> tokens, std::vector<Token>& out);

 private:
  struct Macro {
    bool function_like = false;
    bool variadic = false;
    std::vector<std::string_view> parameters;
    std::vector<Token> body;
  };
  // The meanings of a name, latest first.
  struct Choices {
    std::vector<Macro> macros;
    bool may_be_none = true;
  };

  static size_t ReadParameters(absl::Span<const Token> line, Macro& macro);
  static bool Alike(const Macro& a, const Macro& b);
  const Choices* Expandable(const Token& token) const;

  size_t ExpandUse(const Choices& choices, const Token& name, absl::Span<const Token> tokens, size_t next,
                   std::vector<Token>& out);
  size_t ExpandOne(const Macro& macro, const Token& name, absl::Span<const Token> tokens, size_t next,
                   std::vector<Token>& out);
  size_t ExpandChoices(const Choices& choices, const Token& name, absl::Span<const Token> tokens, size_t next,
                       std::vector<Token>& out);
  size_t End(const Macro& macro, absl::Span<const Token> tokens, size_t next);
  void ExpandBody(const Macro& macro, const std::vector<absl::Span<const Token>>& arguments, const Token& use,
                  std::vector<Token>& out);
  std::vector<Token> Substitute(const Macro& macro, const std::vector<absl::Span<const Token>>& arguments);
  static std::vector<Token> WithVaOpt(const Macro& macro, const std::vector<absl::Span<const Token>>& arguments);
  std::vector<Token> Piece(const Macro& macro, const std::vector<absl::Span<const Token>>& arguments,
                           absl::Span<const Token> body, size_t& i, bool pasted);
  bool IsSpent() const { return budget_.tokens == 0 || budget_.text == 0 || budget_.work == 0; }
  void Paste(Token& left, const Token& right);

  std::deque<std::string>& storage_;
  MacroBudget& budget_;
  absl::flat_hash_map<std::string_view, Choices> macros_;
  std::vector<std::string_view> active_;
  size_t nesting_ = 0;
};

constexpr size_t kMaxNesting = 100;
constexpr size_t kMaxParameters = 256;

void Spend(size_t& budget, size_t amount) { budget -= std::min(budget, amount); }

// One use of a function-like macro.
struct Call {
  std::vector<Tokens> arguments;
  size_t end = 0;  // after the closing parenthesis
};

// `tokens[open]` is '('. Returns nullopt if it has no matching ')'.
std::optional<Call> ReadCall(Tokens tokens, size_t open) {
  Call call;
  int depth = 0;
  size_t begin = open + 1;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].Is("(")) ++depth;
    if (tokens[i].Is(",") && depth == 1) {
      call.arguments.push_back(tokens.subspan(begin, i - begin));
      begin = i + 1;
    }
    if (!tokens[i].Is(")") || --depth > 0) continue;
    call.arguments.push_back(tokens.subspan(begin, i - begin));
    call.end = i + 1;
    return call;
  }
  return std::nullopt;
}

// Joins the arguments beyond the named parameters into one, including its commas.
void JoinVariadic(size_t count, bool variadic, Tokens tokens, size_t close, std::vector<Tokens>& arguments) {
  if (!variadic || arguments.size() <= count) return;
  const Token* begin = arguments[count - 1].data();
  arguments.resize(count);
  arguments.back() = Tokens(begin, static_cast<size_t>(tokens.data() + close - begin));
}

void MacroTable::Define(Tokens line, bool certain) {
  if (line.empty() || !line[0].IsIdentifier()) return;
  Macro macro;
  size_t body = 1;
  if (line.size() > 1 && line[1].Is("(") && !line[1].space_before) body = ReadParameters(line, macro);
  if (macro.parameters.size() > kMaxParameters) return;
  macro.body.assign(line.begin() + static_cast<std::ptrdiff_t>(body), line.end());
  Choices& choices = macros_[line[0].text];
  if (certain) choices = {{}, /*may_be_none=*/false};
  std::erase_if(choices.macros, [&](const Macro& known) { return Alike(known, macro); });
  if (choices.macros.size() >= kMaxChoices) choices.macros.pop_back();
  choices.macros.insert(choices.macros.begin(), std::move(macro));
}

void MacroTable::Undefine(std::string_view name, bool certain) {
  const auto found = macros_.find(name);
  if (found == macros_.end()) return;
  if (certain) {
    macros_.erase(found);
  } else {
    found->second.may_be_none = true;
  }
}

bool MacroTable::Alike(const Macro& a, const Macro& b) {
  const auto same = [](const Token& x, const Token& y) { return x.text == y.text; };
  return a.function_like == b.function_like && a.variadic == b.variadic && a.parameters == b.parameters &&
         std::equal(a.body.begin(), a.body.end(), b.body.begin(), b.body.end(), same);
}

size_t MacroTable::ReadParameters(Tokens line, Macro& macro) {
  macro.function_like = true;
  size_t i = 2;
  bool has_name = false;  // `rest...`
  for (; i < line.size() && !line[i].Is(")"); ++i) {
    if (line[i].Is("...")) {
      macro.variadic = true;
      has_name = line[i - 1].IsIdentifier();
    }
    if (line[i].IsIdentifier()) macro.parameters.push_back(line[i].text);
  }
  if (macro.variadic && !has_name) macro.parameters.push_back("__VA_ARGS__");
  return std::min(i + 1, line.size());
}

bool MacroTable::IsDefined(std::string_view name) const {
  const auto found = macros_.find(name);
  return found != macros_.end() && !found->second.may_be_none;
}

// The meanings to which `token` may expand, or null if it must stay as it is.
const MacroTable::Choices* MacroTable::Expandable(const Token& token) const {
  if (!token.IsIdentifier() || nesting_ > kMaxNesting || IsSpent()) return nullptr;
  const auto found = macros_.find(token.text);
  if (found == macros_.end()) return nullptr;
  return std::find(active_.begin(), active_.end(), token.text) == active_.end() ? &found->second : nullptr;
}

void MacroTable::Expand(Tokens tokens, std::vector<Token>& out) {
  ++nesting_;
  for (size_t i = 0; i < tokens.size();) {
    const Choices* choices = Expandable(tokens[i]);
    if (choices == nullptr) {
      out.push_back(tokens[i++]);
    } else {
      i = ExpandUse(*choices, tokens[i], tokens, i + 1, out);
    }
  }
  --nesting_;
}

// Expands the use of `name`; tokens[next] follows the name. Returns the index after the use.
size_t MacroTable::ExpandUse(const Choices& choices, const Token& name, Tokens tokens, size_t next,
                             std::vector<Token>& out) {
  const bool calls =
      std::all_of(choices.macros.begin(), choices.macros.end(), [](const Macro& m) { return m.function_like; });
  if (calls && (next >= tokens.size() || !tokens[next].Is("("))) {
    out.push_back(name);
    return next;
  }
  if (choices.macros.size() > 1 || choices.may_be_none) return ExpandChoices(choices, name, tokens, next, out);
  const size_t before = out.size();
  next = ExpandOne(choices.macros[0], name, tokens, next, out);
  // The expansion may end with a macro whose arguments follow.
  if (next >= tokens.size() || !tokens[next].Is("(") || out.size() == before) return next;
  const Choices* more = Expandable(out.back());
  if (more == nullptr || End(more->macros[0], tokens, next) == next) return next;
  const Token last = out.back();
  out.pop_back();
  return ExpandUse(*more, last, tokens, next, out);
}

// The same, with `macro` as the meaning of the name.
size_t MacroTable::ExpandOne(const Macro& macro, const Token& name, Tokens tokens, size_t next,
                             std::vector<Token>& out) {
  if (!macro.function_like) {
    ExpandBody(macro, {}, name, out);
    return next;
  }
  std::optional<Call> call;
  if (next < tokens.size() && tokens[next].Is("(")) call = ReadCall(tokens, next);
  Spend(budget_.work, call.has_value() ? call->end - next : tokens.size() - next);
  if (!call.has_value()) {
    out.push_back(name);
    return next;
  }
  JoinVariadic(macro.parameters.size(), macro.variadic, tokens, call->end - 1, call->arguments);
  ExpandBody(macro, call->arguments, name, out);
  return call->end;
}

// The index after a use; tokens[next] follows the macro's name.
size_t MacroTable::End(const Macro& macro, Tokens tokens, size_t next) {
  if (!macro.function_like || next >= tokens.size() || !tokens[next].Is("(")) return next;
  const std::optional<Call> call = ReadCall(tokens, next);
  Spend(budget_.work, call.has_value() ? call->end - next : tokens.size() - next);
  return call.has_value() ? call->end : next;
}

size_t MacroTable::ExpandChoices(const Choices& choices, const Token& name, Tokens tokens, size_t next,
                                 std::vector<Token>& out) {
  size_t end = next;
  for (const Macro& macro : choices.macros) end = std::max(end, End(macro, tokens, next));
  // Every branch repeats the tokens that other macros take as arguments, and so do the branches within it.
  const size_t cost = (choices.macros.size() + 1) * (end - next + 2);
  if (cost > budget_.tokens) {
    budget_.tokens = 0;
    out.push_back(name);
    return next;
  }
  Spend(budget_.tokens, cost);
  std::string_view mark = "#if";
  for (const Macro& macro : choices.macros) {
    out.push_back(Mark(mark, name));
    mark = "#else";
    const size_t after = ExpandOne(macro, name, tokens, next, out);
    Expand(tokens.subspan(after, end - after), out);
  }
  if (choices.may_be_none) {
    out.push_back(Mark(mark, name));
    out.push_back(name);
    Expand(tokens.subspan(next, end - next), out);
  }
  out.push_back(Mark("#endif", name));
  return end;
}

void MacroTable::ExpandBody(const Macro& macro, const std::vector<Tokens>& arguments, const Token& use,
                            std::vector<Token>& out) {
  std::vector<Token> replaced = Substitute(macro, arguments);
  Spend(budget_.tokens, replaced.size());
  Spend(budget_.work, 1 + macro.body.size() * (1 + macro.parameters.size() / 8));
  for (Token& token : replaced) {
    token.source = use.source;
    token.line = use.line;
    token.starts_directive = token.in_directive = false;
  }
  active_.push_back(use.text);
  Expand(replaced, out);
  active_.pop_back();
}

// The body with arguments in place of parameters, and with `#` and `##` applied.
std::vector<Token> MacroTable::Substitute(const Macro& macro, const std::vector<Tokens>& arguments) {
  const std::vector<Token> body = macro.variadic ? WithVaOpt(macro, arguments) : macro.body;
  std::vector<Token> result;
  bool paste = false;
  bool left_empty = true;
  for (size_t i = 0; i < body.size() && result.size() < budget_.tokens && !IsSpent(); ++i) {
    if (body[i].Is("##")) {
      paste = true;
      continue;
    }
    const bool pasted = paste || (i + 1 < body.size() && body[i + 1].Is("##"));
    const bool variadic = macro.variadic && body[i].Is(macro.parameters.back());
    const std::vector<Token> piece = Piece(macro, arguments, body, i, pasted);
    for (const Token& token : piece) Spend(budget_.text, token.text.size());
    if (paste && variadic && !result.empty() && result.back().Is(",")) {  // GNU's `, ##__VA_ARGS__`
      if (piece.empty()) result.pop_back();
      result.insert(result.end(), piece.begin(), piece.end());
    } else if (paste && !left_empty && !piece.empty()) {
      Paste(result.back(), piece[0]);
      result.insert(result.end(), piece.begin() + 1, piece.end());
    } else {
      result.insert(result.end(), piece.begin(), piece.end());
    }
    left_empty = paste ? left_empty && piece.empty() : piece.empty();
    paste = false;
  }
  return result;
}

// The body of a variadic macro, with `__VA_OPT__(...)` resolved for these arguments.
std::vector<Token> MacroTable::WithVaOpt(const Macro& macro, const std::vector<Tokens>& arguments) {
  const bool given = arguments.size() == macro.parameters.size() && !arguments.back().empty();
  std::vector<Token> body;
  bool closed = true;
  for (size_t i = 0; i < macro.body.size(); ++i) {
    const bool optional =
        closed && macro.body[i].Is("__VA_OPT__") && i + 1 < macro.body.size() && macro.body[i + 1].Is("(");
    const std::optional<Call> call = optional ? ReadCall(macro.body, i + 1) : std::nullopt;
    if (!call.has_value()) {
      closed = closed && !optional;
      body.push_back(macro.body[i]);
      continue;
    }
    const auto begin = macro.body.begin() + static_cast<std::ptrdiff_t>(i + 2);
    if (given) body.insert(body.end(), begin, macro.body.begin() + static_cast<std::ptrdiff_t>(call->end - 1));
    i = call->end - 1;
  }
  return body;
}

// The replacement for the body's token `i`. Advances `i` over `#parameter`.
std::vector<Token> MacroTable::Piece(const Macro& macro, const std::vector<Tokens>& arguments, Tokens body, size_t& i,
                                     bool pasted) {
  const Token& token = body[i];
  if (macro.function_like && token.Is("#") && i + 1 < body.size()) {
    ++i;
    return {{TokenKind::kString, "\"\""}};
  }
  const auto parameter = std::find(macro.parameters.begin(), macro.parameters.end(), token.text);
  if (!token.IsIdentifier() || parameter == macro.parameters.end()) return {token};
  const size_t index = static_cast<size_t>(parameter - macro.parameters.begin());
  if (index >= arguments.size()) return {};
  if (pasted) return {arguments[index].begin(), arguments[index].end()};
  std::vector<Token> expanded;
  Expand(arguments[index], expanded);
  return expanded;
}

void MacroTable::Paste(Token& left, const Token& right) {
  // A few macros that paste an argument to itself can make a token of any size. No real identifier is this long.
  constexpr size_t kMaxPastedBytes = 16 << 10;
  const size_t bytes = left.text.size() + right.text.size();
  if (bytes > kMaxPastedBytes || bytes > budget_.text) return;
  Spend(budget_.text, bytes);
  left.text = storage_.emplace_back(StrCat(left.text, right.text));
  if (left.kind == TokenKind::kPunctuator) left.kind = right.kind;
}

// --- Conditionals, and the sources

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
    if (undefined_.contains(name)) return !wanted;
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
    if (name == "define" && !rest.empty()) undefined_.erase(rest[0].text);
    if (name == "undef" && !rest.empty() && conditionals_.Certain()) undefined_.insert(rest[0].text);
    if (name != "include" && name != "include_next" && name != "import") return;
    const std::optional<Include> include = ReadInclude(rest);
    if (include.has_value() && !IsUserHeader(*include)) return;
    result_.includes_user_headers = true;
    undefined_.clear();  // it may define them
  }

  void AddMark(std::string_view text, const Token& at) {
    if (!text.empty()) result_.tokens.push_back(Mark(text, at));
  }

  Preprocessed& result_;
  Conditionals conditionals_;
  MacroTable macros_;
  std::set<std::string_view> undefined_;  // by an #undef, for certain
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
