// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/preprocessor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/base/strings.h"

namespace kernix::codegen {
namespace {

using Tokens = absl::Span<const Token>;

// What macros of one request may grow to, and what finding that out may cost: sources come from other users.
constexpr size_t kMaxTokens = 1'000'000;
constexpr size_t kMaxWork = 16'000'000;
constexpr size_t kMaxNesting = 100;

struct Macro {
  bool function_like = false;
  bool variadic = false;
  std::vector<std::string_view> parameters;
  std::vector<Token> body;
};

// One use of a function-like macro.
struct Call {
  std::vector<Tokens> arguments;
  size_t end = 0;  // after the closing parenthesis
};

// `tokens[open]` is '('. nullopt without a matching ')'.
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

class MacroTable {
 public:
  explicit MacroTable(std::deque<std::string>& storage) : storage_(storage) {}

  // `line` is what follows `#define`.
  void Define(Tokens line) {
    if (line.empty() || !line[0].IsIdentifier()) return;
    Macro macro;
    size_t body = 1;
    if (line.size() > 1 && line[1].Is("(") && !line[1].space_before) body = ReadParameters(line, macro);
    macro.body.assign(line.begin() + static_cast<std::ptrdiff_t>(body), line.end());
    macros_[line[0].text] = std::move(macro);
  }

  void Undefine(std::string_view name) { macros_.erase(name); }

  // Appends the expansion of `tokens` to `out`.
  void Expand(Tokens tokens, std::vector<Token>& out) {
    ++nesting_;
    for (size_t i = 0; i < tokens.size();) {
      const Macro* macro = Expandable(tokens[i]);
      if (macro == nullptr) {
        out.push_back(tokens[i++]);
      } else if (!macro->function_like) {
        ExpandBody(*macro, {}, tokens[i++], out);
      } else {
        i = ExpandCall(*macro, tokens, i, out);
      }
    }
    --nesting_;
  }

 private:
  static size_t ReadParameters(Tokens line, Macro& macro) {
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

  const Macro* Expandable(const Token& token) const {
    if (!token.IsIdentifier() || nesting_ > kMaxNesting || produced_ > kMaxTokens || work_ > kMaxWork) return nullptr;
    const auto found = macros_.find(token.text);
    if (found == macros_.end()) return nullptr;
    return std::find(active_.begin(), active_.end(), token.text) == active_.end() ? &found->second : nullptr;
  }

  // Returns the index after the call.
  size_t ExpandCall(const Macro& macro, Tokens tokens, size_t i, std::vector<Token>& out) {
    std::optional<Call> call;
    if (i + 1 < tokens.size() && tokens[i + 1].Is("(")) call = ReadCall(tokens, i + 1);
    work_ += call.has_value() ? call->end - i : tokens.size() - i;
    if (!call.has_value()) {
      out.push_back(tokens[i]);
      return i + 1;
    }
    JoinVariadic(macro, tokens, call->end - 1, call->arguments);
    ExpandBody(macro, call->arguments, tokens[i], out);
    return call->end;
  }

  // What goes beyond the named parameters is one argument, commas and all.
  static void JoinVariadic(const Macro& macro, Tokens tokens, size_t close, std::vector<Tokens>& arguments) {
    const size_t count = macro.parameters.size();
    if (!macro.variadic || arguments.size() <= count) return;
    const Token* begin = arguments[count - 1].data();
    arguments.resize(count);
    arguments.back() = Tokens(begin, static_cast<size_t>(tokens.data() + close - begin));
  }

  void ExpandBody(const Macro& macro, const std::vector<Tokens>& arguments, const Token& use, std::vector<Token>& out) {
    std::vector<Token> replaced = Substitute(macro, arguments);
    produced_ += replaced.size();
    work_ += 1 + macro.body.size();
    for (Token& token : replaced) {
      token.source = use.source;
      token.line = use.line;
      token.starts_directive = token.in_directive = false;
    }
    active_.push_back(use.text);
    Expand(replaced, out);
    active_.pop_back();
  }

  // The body with arguments in place of parameters; `#` and `##` are done.
  std::vector<Token> Substitute(const Macro& macro, const std::vector<Tokens>& arguments) {
    const std::vector<Token> body = macro.variadic ? WithVaOpt(macro, arguments) : macro.body;
    std::vector<Token> result;
    bool paste = false;
    bool left_empty = true;
    for (size_t i = 0; i < body.size() && produced_ + result.size() < kMaxTokens; ++i) {
      if (body[i].Is("##")) {
        paste = true;
        continue;
      }
      const bool pasted = paste || (i + 1 < body.size() && body[i + 1].Is("##"));
      const bool variadic = macro.variadic && body[i].Is(macro.parameters.back());
      const std::vector<Token> piece = Piece(macro, arguments, body, i, pasted);
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

  // The body of a variadic macro, with what `__VA_OPT__(...)` gives for these arguments.
  static std::vector<Token> WithVaOpt(const Macro& macro, const std::vector<Tokens>& arguments) {
    const bool given = arguments.size() == macro.parameters.size() && !arguments.back().empty();
    std::vector<Token> body;
    for (size_t i = 0; i < macro.body.size(); ++i) {
      const bool optional = macro.body[i].Is("__VA_OPT__") && i + 1 < macro.body.size() && macro.body[i + 1].Is("(");
      const std::optional<Call> call = optional ? ReadCall(macro.body, i + 1) : std::nullopt;
      if (!call.has_value()) {
        body.push_back(macro.body[i]);
        continue;
      }
      const auto begin = macro.body.begin() + static_cast<std::ptrdiff_t>(i + 2);
      if (given) body.insert(body.end(), begin, macro.body.begin() + static_cast<std::ptrdiff_t>(call->end - 1));
      i = call->end - 1;
    }
    return body;
  }

  // What stands for the body's token `i`, which is advanced over `#parameter`.
  std::vector<Token> Piece(const Macro& macro, const std::vector<Tokens>& arguments, Tokens body, size_t& i,
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

  void Paste(Token& left, const Token& right) {
    // A few macros that paste an argument to itself make any size out of nothing. No identifier is that long.
    constexpr size_t kMaxPastedBytes = 16 << 10;
    if (left.text.size() + right.text.size() > kMaxPastedBytes) return;
    left.text = storage_.emplace_back(StrCat(left.text, right.text));
    if (left.kind == TokenKind::kPunctuator) left.kind = right.kind;
  }

  std::deque<std::string>& storage_;
  absl::flat_hash_map<std::string_view, Macro> macros_;
  std::vector<std::string_view> active_;
  size_t nesting_ = 0;
  size_t produced_ = 0;
  size_t work_ = 0;
};

// The conditionals that are open.
class Conditionals {
 public:
  bool Live() const {
    return std::none_of(open_.begin(), open_.end(), [](const Open& conditional) { return conditional.is_excluded; });
  }

  void If(std::optional<bool> condition) { open_.push_back({condition == false, condition == true}); }
  // Returns whether the branch that begins may be compiled.
  bool Else() {
    if (!open_.empty()) open_.back().is_excluded = open_.back().is_decided;
    return open_.empty() || !open_.back().is_excluded;
  }
  void End() {
    if (!open_.empty()) open_.pop_back();
  }

 private:
  struct Open {
    bool is_excluded;  // its current branch
    bool is_decided;   // no later branch can be compiled
  };
  std::vector<Open> open_;
};

class Preprocessor {
 public:
  explicit Preprocessor(Preprocessed& result) : result_(result), macros_(result.storage) {}

  void Add(const LexedSource& source) {
    const Tokens tokens = source.tokens;
    size_t comment = 0;
    for (size_t i = 0; i < tokens.size();) {
      const size_t end = EndOfRun(tokens, i);
      const Tokens run = tokens.subspan(i, end - i);
      comment = AddComments(source, comment, i);
      if (run[0].starts_directive) {
        Directive(run);
      } else if (conditionals_.Live()) {
        macros_.Expand(run, result_.tokens);
      }
      i = end;
    }
    AddComments(source, comment, tokens.size());
  }

 private:
  // One directive, or everything up to the next one.
  static size_t EndOfRun(Tokens tokens, size_t begin) {
    size_t end = begin + 1;
    while (end < tokens.size() && !tokens[end].starts_directive &&
           tokens[end].in_directive == tokens[begin].in_directive)
      ++end;
    return end;
  }

  // Takes the comments from `comment` up to the token `until`; text between directives is live or dead as a whole.
  size_t AddComments(const LexedSource& source, size_t comment, size_t until) {
    for (; comment < source.comments.size() && source.comments[comment].next_token <= until; ++comment) {
      const LineComment& line = source.comments[comment];
      if (conditionals_.Live()) result_.comments.push_back({line.text, source.source, line.line});
    }
    return comment;
  }

  void Directive(Tokens line) {
    if (line.size() < 2) return;
    const std::string_view name = line[1].text;
    const Tokens rest = line.subspan(2);
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      conditionals_.If(name == "if" ? Constant(rest) : std::nullopt);
      Mark("#if", line[0]);
    } else if (name == "else" || name == "elif") {
      if (conditionals_.Else()) Mark("#else", line[0]);
    } else if (name == "endif") {
      conditionals_.End();
      Mark("#endif", line[0]);
    } else if (conditionals_.Live()) {
      Definition(name, rest);
    }
  }

  // What people write to leave a part of the text out.
  static std::optional<bool> Constant(Tokens condition) {
    if (condition.size() != 1) return std::nullopt;
    if (condition[0].Is("0") || condition[0].Is("false")) return false;
    if (condition[0].Is("1") || condition[0].Is("true")) return true;
    return std::nullopt;
  }

  void Definition(std::string_view name, Tokens rest) {
    if (name == "define") macros_.Define(rest);
    if (name == "undef" && !rest.empty()) macros_.Undefine(rest[0].text);
    const std::optional<Include> include = name == "include" ? ReadInclude(rest) : std::nullopt;
    if (include.has_value()) result_.includes.push_back(*include);
  }

  void Mark(std::string_view text, const Token& at) {
    result_.tokens.push_back({TokenKind::kPunctuator, text, at.source, at.line});
  }

  Preprocessed& result_;
  MacroTable macros_;
  Conditionals conditionals_;
};

}  // namespace

std::optional<Include> ReadInclude(Tokens rest) {
  if (rest.empty()) return std::nullopt;
  const std::string_view first = rest[0].text;
  if (rest[0].kind == TokenKind::kString && first.size() > 2 && first.ends_with('"')) {
    return Include{first.substr(1, first.size() - 2), true};
  }
  const auto close = std::find_if(rest.begin(), rest.end(), [](const Token& token) { return token.Is(">"); });
  if (!rest[0].Is("<") || close == rest.end()) return std::nullopt;
  const char* begin = first.data() + 1;
  return Include{std::string_view(begin, static_cast<size_t>(close->text.data() - begin)), false};
}

Preprocessed Preprocess(const std::vector<LexedSource>& sources) {
  Preprocessed result;
  Preprocessor preprocessor(result);
  for (const LexedSource& source : sources) preprocessor.Add(source);
  return result;
}

}  // namespace kernix::codegen
