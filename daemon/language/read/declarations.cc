// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/declarations.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"

namespace kernix::language {
namespace {

// Words whose parentheses hold no declarator.
bool TakesParentheses(const Token& token) {
  return IsOneOf(token, {"__attribute__", "__attribute", "decltype", "__decltype", "__typeof__", "__typeof", "typeof",
                         "noexcept", "throw", "alignas", "asm", "__asm__", "__asm", "explicit", "requires"});
}

bool SaysNothing(const Token& token) {
  return token.kind == TokenKind::kString || IsOneOf(token, {"__extension__", "extern", "static", "inline", "__inline",
                                                             "__inline__", "constexpr", "const", "volatile"});
}

}  // namespace

bool IsOneOf(const Token& token, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return token.Is(word); });
}

bool Contains(Tokens tokens, std::string_view word) {
  return std::any_of(tokens.begin(), tokens.end(), [word](const Token& token) { return token.Is(word); });
}

size_t AfterBrackets(Tokens tokens, size_t at) {
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    depth += IsOpen(tokens[at]) ? 1 : IsClose(tokens[at]) ? -1 : 0;
    if (depth == 0) return at + 1;
  }
  return at;
}

namespace {

// `opens_before_number`: whether `n<2` begins a template's arguments.
std::optional<size_t> FindAfterAngles(Tokens tokens, size_t at, bool opens_before_number) {
  int depth = 0;
  while (at < tokens.size()) {
    if (IsOpen(tokens[at])) {
      at = AfterBrackets(tokens, at);
      continue;
    }
    const bool is_operator = at + 1 < tokens.size() && !tokens[at + 1].space_before &&
                             (tokens[at + 1].Is("=") || (tokens[at].Is("<") && tokens[at + 1].Is("<")));
    if (is_operator) {  // `>=`, `<<`
      at += 2;
      continue;
    }
    if (opens_before_number && IsOneOf(tokens[at], {"__attribute__", "__attribute"})) return std::nullopt;
    const bool is_less = !opens_before_number && depth > 0 && at + 1 < tokens.size() && tokens[at].Is("<") &&
                         tokens[at + 1].kind == TokenKind::kNumber;
    depth += is_less ? 0 : tokens[at].Is("<") ? 1 : tokens[at].Is(">") ? -1 : 0;
    ++at;
    if (depth == 0) return at;
  }
  return std::nullopt;
}

}  // namespace

// Without the names of a unit, `n<2` is a comparison where there are too few '>', or only behind the specifiers.
size_t AfterAngles(Tokens tokens, size_t at) {
  std::optional<size_t> end = FindAfterAngles(tokens, at, /*opens_before_number=*/true);
  if (!end) end = FindAfterAngles(tokens, at, /*opens_before_number=*/false);
  return end.value_or(tokens.size());
}

std::vector<Token> EssenceOf(Tokens tokens) {
  std::vector<Token> result;
  for (size_t at = 0; at < tokens.size();) {
    const bool more = at + 1 < tokens.size();
    if (TakesParentheses(tokens[at])) {
      at = more && tokens[at + 1].Is("(") ? AfterBrackets(tokens, at + 1) : at + 1;
    } else if (more && tokens[at].Is("[") && tokens[at + 1].Is("[")) {
      at = AfterBrackets(tokens, at);
    } else if (result.empty() && tokens[at].Is("template")) {
      at = more && tokens[at + 1].Is("<") ? AfterAngles(tokens, at + 1) : at + 1;
    } else if (SaysNothing(tokens[at])) {
      ++at;
    } else {
      result.push_back(tokens[at++]);
    }
  }
  return result;
}

bool IsAssignment(Tokens tokens, size_t at) {
  if (at >= tokens.size() || !tokens[at].Is("=")) return false;
  const bool ends_operator = at > 0 && !tokens[at].space_before && !tokens[at - 1].IsIdentifier() &&
                             !IsClose(tokens[at - 1]) && tokens[at - 1].kind == TokenKind::kPunctuator;
  const bool begins_operator = at + 1 < tokens.size() && tokens[at + 1].Is("=") && !tokens[at + 1].space_before;
  return !ends_operator && !begins_operator;
}

bool HasAtTop(Tokens tokens, std::string_view word) {
  for (size_t at = 0; at < tokens.size(); at = IsOpen(tokens[at]) ? AfterBrackets(tokens, at) : at + 1) {
    if (word == "=" ? IsAssignment(tokens, at) : tokens[at].Is(word)) return true;
  }
  return false;
}

bool BeginsFunction(Tokens before_brace) {
  const std::vector<Token> essence = EssenceOf(before_brace);
  return HasAtTop(essence, "(") && (!HasAtTop(essence, "=") || HasAtTop(essence, "operator"));
}

namespace {

// Finds the names of one declaration.
class NameFinder {
 public:
  explicit NameFinder(Tokens tokens) : tokens_(tokens) {}

  std::vector<std::string_view> Find() {
    if (tokens_.empty()) return {};
    if (tokens_[0].Is("using") || tokens_[0].Is("namespace") || tokens_[0].Is("concept")) {
      FindAlias();
    } else {
      const size_t first = tokens_[0].Is("typedef") || tokens_[0].Is("friend") ? 1 : 0;
      const size_t after_type = FindType(first);
      FindDeclarators(after_type);
    }
    if (names_.empty()) AddAll(0, tokens_.size());
    return std::move(names_);
  }

 private:
  bool Is(size_t at, std::string_view text) const { return at < tokens_.size() && tokens_[at].Is(text); }
  bool IsName(size_t at) const {
    return at < tokens_.size() && tokens_[at].IsIdentifier() && !IsKeyword(tokens_[at].text);
  }
  void Add(size_t at) {
    if (IsName(at)) names_.push_back(tokens_[at].text);
  }
  void AddAll(size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) Add(at);
  }

  // `using X = ...`, `using A::X`, `namespace X = ...`, `concept X = ...`.
  void FindAlias() {
    if (Is(2, "=")) return Add(1);
    for (size_t at = 1; at < tokens_.size(); ++at) {
      if (Is(at + 1, ";") || Is(at + 1, ",")) Add(at);
    }
  }

  // A class or an enumeration. Returns where the declarators begin, which is after its body, if it has one.
  size_t FindType(size_t at) {
    if (at >= tokens_.size() || !IsOneOf(tokens_[at], {"class", "struct", "union", "enum"})) return at;
    const bool is_enum = tokens_[at].Is("enum");
    const bool is_scoped = is_enum && (Is(at + 1, "class") || Is(at + 1, "struct"));
    at += is_scoped ? 2 : 1;
    const bool has_name = IsName(at);
    while (IsName(at)) {  // X, or X::Y
      Add(at++);
      if (Is(at, "<")) at = AfterAngles(tokens_, at);
      if (Is(at, "::")) ++at;
      if (IsName(at) && !Is(at - 1, "::")) break;  // a declarator
    }
    const size_t body = FindBody(at);
    if (body >= tokens_.size()) return at;
    const size_t end = AfterBrackets(tokens_, body);
    if (is_enum && !is_scoped) AddEnumerators(body + 1, end - 1);
    if (!is_enum && !has_name && Is(end, ";")) AddAll(body, end);  // a union's members are names of their own
    return end;
  }

  // The '{' of a class's body: after its name, perhaps with bases.
  size_t FindBody(size_t at) const {
    if (Is(at, "final")) ++at;
    if (Is(at, "{")) return at;
    if (!Is(at, ":")) return tokens_.size();
    for (; at < tokens_.size() && !Is(at, "{"); ++at) {
      if (Is(at, ";")) return tokens_.size();
    }
    return at;
  }

  void AddEnumerators(size_t begin, size_t end) {
    bool first = true;
    for (size_t at = begin; at < end;) {
      if (first) Add(at);
      first = Is(at, ",");
      at = IsOpen(tokens_[at]) ? AfterBrackets(tokens_, at) : at + 1;
    }
  }

  // Names stand before '(', '[', '=', ',', ';', ':' or '{', or inside of (*name).
  void FindDeclarators(size_t at) {
    const size_t begin = at;
    while (at < tokens_.size()) {
      if (Is(at, "<") && at > begin && IsName(at - 1)) {
        const size_t name = at - 1;
        at = AfterAngles(tokens_, at);
        if (Is(at, "(") || Is(at, ";") || Is(at, "=") || Is(at, "{")) Add(name);
        continue;
      }
      const bool ends_name = IsAssignment(tokens_, at) || IsOneOf(tokens_[at], {"(", "[", ",", ";", ":", "{"});
      if (ends_name && at > begin) Add(at - 1);
      if (Is(at, "(")) {
        const size_t end = AfterBrackets(tokens_, at);
        const bool wraps = at == begin || (!IsName(at - 1) && !Is(at - 1, ")"));
        if (wraps || Is(at + 1, "*") || Is(at + 1, "&")) AddAll(at + 1, end - 1);
        at = end;
      } else if (Is(at, "{")) {
        at = AfterBrackets(tokens_, at);
      } else if (IsAssignment(tokens_, at)) {
        at = AfterValue(at) + 1;
      } else {
        at = Is(at, "[") ? AfterBrackets(tokens_, at) : at + 1;
      }
    }
  }

  // The ',' or ';' after the value that '=' at `at` begins.
  size_t AfterValue(size_t at) const {
    while (at < tokens_.size() && !Is(at, ",") && !Is(at, ";")) {
      const size_t after_angles = Is(at, "<") && IsName(at - 1) ? AfterAngles(tokens_, at) : tokens_.size();
      if (after_angles < tokens_.size()) {
        at = after_angles;
      } else {
        at = IsOpen(tokens_[at]) ? AfterBrackets(tokens_, at) : at + 1;
      }
    }
    return at;
  }

  Tokens tokens_;
  std::vector<std::string_view> names_;
};

// Reads a text from its beginning to its end.
class Reader {
 public:
  Reader(std::string_view text, const OriginOf& origin_of, Declarations& out)
      : origin_of_(origin_of), out_(out), lexer_(text, out.storage) {}

  void Read() {
    ReadTokens();
    for (at_ = 0; at_ < code_.size();) ReadOne();
  }

 private:
  void ReadTokens() {
    std::vector<Token> line;
    for (Token token; lexer_.Next(token);) {
      if (token.starts_directive) ReadLine(std::exchange(line, {}));
      if (token.IsIdentifier() && seen_.insert(token.text).second) out_.words.push_back(token.text);
      if (token.in_directive) {
        line.push_back(token);
        continue;
      }
      ReadLine(std::exchange(line, {}));
      code_.push_back(token);
      origins_.push_back(origins_of_files_.back());
    }
    ReadLine(line);
  }

  // `# 12 "file" 1`, `#define X ...`, `#undef X`.
  void ReadLine(Tokens line) {
    if (line.size() < 3) return;
    if (line[1].kind == TokenKind::kNumber) {
      ReadMarker(line.subspan(2));
    } else if (line[1].Is("define")) {
      ReadMacro(line.subspan(2));
    } else if (line[1].Is("undef")) {
      out_.macros.erase(line[2].text);
    }
  }

  void ReadMarker(Tokens line) {
    for (const Token& flag : line.subspan(1)) {
      if (flag.Is("1")) origins_of_files_.push_back(origins_of_files_.back());
      if (flag.Is("2") && origins_of_files_.size() > 1) origins_of_files_.pop_back();
    }
  }

  void ReadMacro(Tokens line) {
    const uint32_t origin = origin_of_(line[0].text);
    if (origin != 0) origins_of_files_.back() = origin;
    out_.macros[line[0].text] = {Digest(line, ""), origins_of_files_.back()};
  }

  static uint64_t Digest(Tokens tokens, std::string_view scope) {
    std::string text(scope);
    for (const Token& token : tokens) StrAppend(&text, " ", token.text);
    return absl::HashOf(text);
  }

  bool Is(size_t at, std::string_view text) const { return at < code_.size() && code_[at].Is(text); }

  void ReadOne() {
    if (Is(at_, ";")) {
      ++at_;
    } else if (Is(at_, "}")) {
      if (!scopes_.empty()) scopes_.pop_back();
      ++at_;
    } else if (Is(at_, "{")) {  // what is left of a function
      at_ = AfterBrackets(code_, at_);
    } else if (Is(at_, "extern") && at_ + 1 < code_.size() && code_[at_ + 1].kind == TokenKind::kString &&
               Is(at_ + 2, "{")) {
      scopes_.emplace_back();
      at_ += 3;
    } else if (!ReadNamespace()) {
      ReadDeclaration();
    }
  }

  // `namespace A::B {`. Returns false if something else follows.
  bool ReadNamespace() {
    size_t at = at_ + (Is(at_, "inline") ? 1 : 0);
    if (!Is(at, "namespace")) return false;
    const std::vector<Token> head = EssenceOf(Tokens(code_).subspan(at, EndOfHead(at) - at));
    if (!Is(EndOfHead(at), "{")) return false;
    std::string name;
    std::vector<std::string_view> names;
    for (const Token& token : head) {
      if (token.IsIdentifier() && !token.Is("namespace") && !token.Is("inline")) {
        StrAppend(&name, name.empty() ? "" : "::", token.text);
        names.push_back(token.text);
      }
    }
    if (namespaces_.insert(StrCat(Scope(), "::", name)).second) {
      Declare(Declaration::Kind::kNames, std::move(names), {}, head);
    }
    scopes_.push_back(name);
    at_ = EndOfHead(at) + 1;
    return true;
  }

  size_t EndOfHead(size_t at) const {
    while (at < code_.size() && !Is(at, "{") && !Is(at, ";") && !Is(at, "=")) ++at;
    return at;
  }

  void ReadDeclaration() {
    const Extent extent = FindEnd();
    const Tokens all = Tokens(code_).subspan(at_, extent.end - at_);
    const Tokens head = all.first(extent.body - at_);
    const std::vector<Token> essence = EssenceOf(extent.is_function ? head : all);
    std::vector<std::string_view> body;
    if (extent.is_function) body = Identifiers(all.subspan(extent.body - at_));
    const Declaration::Kind kind = KindOf(essence);
    std::vector<std::string_view> names;
    if (kind == Declaration::Kind::kNames) names = NameFinder(essence).Find();
    if (kind == Declaration::Kind::kOperator) names = Identifiers(essence);
    Declare(kind, std::move(names), std::move(body), all);
    at_ = extent.end;
  }

  static std::vector<std::string_view> Identifiers(Tokens tokens) {
    std::vector<std::string_view> names;
    for (const Token& token : tokens) {
      if (token.IsIdentifier() && !IsKeyword(token.text)) names.push_back(token.text);
    }
    return names;
  }

  static Declaration::Kind KindOf(Tokens essence) {
    using Kind = Declaration::Kind;
    if (essence.empty() || essence[0].Is("static_assert") || essence[0].Is("(") || essence[0].Is(";")) {
      return Kind::kNothing;
    }
    if (essence.size() > 1 && essence[0].Is("using") && essence[1].Is("namespace")) return Kind::kUsingNamespace;
    for (size_t at = 0; at < essence.size(); at = IsOpen(essence[at]) ? AfterBrackets(essence, at) : at + 1) {
      if (!essence[at].Is("operator")) continue;
      const bool allocates = at + 1 < essence.size() && IsOneOf(essence[at + 1], {"new", "delete"});
      return allocates ? Kind::kAllocation : Kind::kOperator;
    }
    return Kind::kNames;
  }

  struct Extent {
    size_t body = 0;  // where a function's body begins
    size_t end = 0;
    bool is_function = false;
  };

  // The declaration at `at_` ends after a function's body, or after the ';'.
  Extent FindEnd() const {
    size_t at = at_;
    while (at < code_.size()) {
      if (Is(at, ";")) return {at + 1, at + 1, false};
      if (Is(at, "}")) return {at, at, false};  // unbalanced: the end of a namespace
      if (Is(at, "{") && BeginsFunction(Tokens(code_).subspan(at_, at - at_))) {
        return {at, AfterBrackets(code_, at), true};
      }
      at = IsOpen(code_[at]) ? AfterBrackets(code_, at) : at + 1;
    }
    return {at, at, false};
  }

  void Declare(Declaration::Kind kind, std::vector<std::string_view> names, std::vector<std::string_view> body,
               Tokens all) {
    Declaration declaration;
    declaration.kind = kind;
    declaration.scope = Scope();
    declaration.names = std::move(names);
    declaration.body = std::move(body);
    declaration.digest = Digest(all, StrCat(declaration.scope, "{"));
    declaration.origin = origins_[at_];
    declaration.is_for_devices =
        std::any_of(all.begin(), all.end(), [](const Token& token) { return token.Is("device"); });
    out_.list.push_back(std::move(declaration));
  }

  std::string Scope() const {
    std::string scope;
    for (const std::string& name : scopes_) {
      if (!name.empty()) StrAppend(&scope, scope.empty() ? "" : "::", name);
    }
    return scope;
  }

  const OriginOf& origin_of_;
  Declarations& out_;
  Lexer lexer_;
  std::vector<Token> code_;
  std::vector<uint32_t> origins_;                 // of code_
  std::vector<uint32_t> origins_of_files_ = {0};  // of the file that is read, and of those that include it
  absl::flat_hash_set<std::string_view> seen_;
  std::vector<std::string> scopes_;
  absl::flat_hash_set<std::string> namespaces_;  // that have been opened
  size_t at_ = 0;
};

}  // namespace

Declarations ReadDeclarations(std::string_view text, const OriginOf& origin_of) {
  Declarations declarations;
  Reader(text, origin_of, declarations).Read();
  return declarations;
}

}  // namespace kernix::language
