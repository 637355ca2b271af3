// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/macro_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/strings.h"

namespace kernix::language {
namespace {

using Tokens = absl::Span<const Token>;

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

}  // namespace

Token Mark(std::string_view text, const Token& at) { return {TokenKind::kPunctuator, text, at.source, at.line}; }

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

}  // namespace kernix::language
