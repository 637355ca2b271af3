// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/device_code.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/cxx/lexer.h"
#include "daemon/language/read/declarations.h"
#include "daemon/language/read/device_text.h"

namespace kernix::language {
namespace {

using Names = absl::flat_hash_set<std::string_view>;

// A digest of tokens, whatever white space is between them. Where a preprocessor line begins and ends counts.
class TokenDigest {
 public:
  void Add(const Token& token) {
    const int parted = token.space_before && MayJoin(last_, token) ? 1 : 0;
    buffer_ += static_cast<char>(parted + (token.in_directive ? 2 : 0) + (token.starts_directive ? 4 : 0));
    // Its length, so that no literal can hold what looks like several tokens.
    for (size_t size = token.text.size(); size > 0; size >>= 7) buffer_ += static_cast<char>(0x80 | (size & 0x7f));
    buffer_ += '\0';
    buffer_ += token.text;
    last_ = token;
    if (buffer_.size() > kBufferSize) Flush();
  }
  void Add(Tokens tokens) {
    for (const Token& token : tokens) Add(token);
  }
  Digest Finish() {
    Flush();
    return sha_.Finish();
  }

 private:
  static constexpr size_t kBufferSize = 16 << 10;

  void Flush() {
    sha_.Update(buffer_);
    buffer_.clear();
  }

  Sha256 sha_;
  std::string buffer_;
  Token last_;
};

bool IsAttribute(const Token& token) {
  return token.text.starts_with('_') && IsOneOf(token, {"__attribute__", "__attribute", "__declspec"});
}

bool IsSpecifier(const Token& token, std::string_view word) {  // "device", "__device__"
  if (!token.IsIdentifier()) return false;
  std::string_view text = token.text;
  if (text.starts_with("__") && text.ends_with("__") && text.size() > 4) text = text.substr(2, text.size() - 4);
  return text == word;
}

// Which of CUDA's specifiers a declaration or a part of one has.
struct Specifiers {
  bool device = false;
  bool other = false;  // a kernel, or a variable of a special memory

  bool any() const { return device || other; }
};

Specifiers SpecifiersOf(Tokens tokens) {
  Specifiers found;
  for (size_t at = 0; at + 1 < tokens.size(); ++at) {
    const bool has_brackets = tokens[at].Is("[") && tokens[at + 1].Is("[");  // `[[gnu::device]]`
    if (!IsAttribute(tokens[at]) && !has_brackets) continue;
    const size_t end = AfterBrackets(tokens, at + 1);
    for (; at < end; ++at) {
      found.device = found.device || IsSpecifier(tokens[at], "device");
      found.other = found.other || IsSpecifier(tokens[at], "global") || IsSpecifier(tokens[at], "constant") ||
                    IsSpecifier(tokens[at], "managed");
    }
    --at;
  }
  return found;
}

bool IsTypeWord(const Token& token) {
  return IsOneOf(token, {"void", "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed",
                         "const", "volatile", "auto"});
}

bool HasAssignment(Tokens tokens) {
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (IsAssignment(tokens, at)) return true;
  }
  return false;
}

// Words whose parentheses are no part of a declarator.
bool TakesParentheses(const Token& token) {
  return IsOneOf(token, {"decltype", "typeof", "__typeof__", "__typeof", "alignas", "explicit", "requires"});
}

// Whether `tokens` declare a parameter, and are not a value. `types`: the template's, and those of the unit.
bool IsParameter(Tokens tokens, const Names& own_types, const Names& types) {
  const auto is_name = [&](const Token& token) { return own_types.contains(token.text) || types.contains(token.text); };
  const auto is_type = [&](const Token& token) {
    return is_name(token) || IsTypeWord(token) ||
           IsOneOf(token, {"struct", "class", "union", "enum", "typename", "decltype", "..."});
  };
  // `T::value`: a type would need `typename`.
  if (tokens.size() > 1 && tokens[1].Is("::") && own_types.contains(tokens.front().text)) return false;
  // A class template of elsewhere has a declarator behind it; `kOne<T>`, `kOne<T> * 2` and `n < 2` are values.
  const size_t behind = tokens.size() > 1 && tokens[1].Is("<") ? AfterAngles(tokens, 1) : tokens.size();
  const auto is_declarator = [](const Token& token) {
    return token.IsIdentifier() || IsOneOf(token, {"&", "*", "..."});
  };
  const bool is_instance = behind < tokens.size() && is_declarator(tokens[behind]) && is_declarator(tokens.back());
  bool has_type = is_type(tokens.front()) || is_instance;
  // `::a::b`, `a::b&`: the last name says what it is.
  size_t last = tokens.front().Is("::") ? 1 : 0;
  while (last + 2 < tokens.size() && tokens[last].IsIdentifier() && tokens[last + 1].Is("::")) last += 2;
  if (last < tokens.size() && is_name(tokens[last])) has_type = true;
  for (size_t at = 0; at + 1 < tokens.size(); ++at) {
    const Token& next = tokens[at + 1];
    if (TakesParentheses(tokens[at]) && next.Is("(")) {
      at = AfterBrackets(tokens, at + 1) - 1;
      continue;
    }
    if (next.Is("=")) break;                                                                    // before a default
    if (next.Is("{")) return false;                                                             // T{}
    const bool follows_declarator = at > 0 && tokens[at - 1].Is(")");                           // `int (*)(T)`
    if (tokens[at].Is("(") && !IsOneOf(next, {"*", "&"}) && !follows_declarator) return false;  // T(0)
    if (tokens[at].Is(">") && next.Is("::") && !tokens.front().Is("typename")) return false;    // A<T>::value
    if (tokens[at].IsIdentifier() && next.IsIdentifier()) has_type = true;                      // size_t n
  }
  return has_type;
}

// Whether `(...)` after a name makes it a function, and not a variable with its first value. `declaration`: all of it.
// `types`: those of the unit.
bool AreParameters(Tokens parentheses, Tokens declaration, const Names& types) {
  Names own_types;
  for (size_t at = 1; at < declaration.size(); ++at) {
    const size_t before = declaration[at - 1].Is("...") && at > 1 ? at - 2 : at - 1;
    if (IsOneOf(declaration[before], {"typename", "class"})) own_types.insert(declaration[at].text);
  }
  const Tokens inside = parentheses.subspan(1, parentheses.size() - 2);
  for (size_t begin = 0, at = 0; begin < inside.size(); begin = ++at) {
    while (at < inside.size() && !inside[at].Is(",")) {
      at = IsOpen(inside[at]) ? AfterBrackets(inside, at) : inside[at].Is("<") ? AfterAngles(inside, at) : at + 1;
    }
    if (begin == at || !IsParameter(inside.subspan(begin, at - begin), own_types, types)) return false;
  }
  return true;
}

// The '(' of the parameters of `operator=`, `operator()`, `operator T`; `at`: its first word.
size_t AfterOperator(Tokens tokens, size_t at) {
  ++at;
  if (at + 1 < tokens.size() && tokens[at].Is("(") && tokens[at + 1].Is(")")) return at + 2;
  while (at < tokens.size() && !tokens[at].Is("(")) ++at;
  return at;
}

// The name of a plain host function; empty: something else.
struct FunctionName {
  std::string_view last;
  bool is_qualified = false;  // `A::f`: of a class or a namespace
};

// Whether the tokens before a '{' make it a class. What has parentheses may be a function, and what has brackets a
// lambda: their body may declare functions outside of the class.
bool BeginsClass(Tokens before_brace) {
  const std::vector<Token> essence = EssenceOf(before_brace);
  const auto has = [&](std::string_view word) { return HasAtTop(essence, word); };
  return (has("struct") || has("class") || has("union")) && !has("(") && !has("[");
}

// Whether `parentheses` hold one name: `(f)`, `(A::f)`, or a type.
bool IsName(Tokens parentheses) {
  for (size_t at = 1; at < parentheses.size(); ++at) {
    const Token& token = parentheses[at];
    if (!token.IsIdentifier() && !IsOneOf(token, {"::", "(", ")"})) return false;
    if (token.IsIdentifier() && parentheses[at - 1].IsIdentifier()) return false;  // `T x`
  }
  return true;
}

// Whether a name before `token` is one of a type or a scope, and not what is declared: `A::`, `A*`, `A f`.
bool GoesOnAfterType(const Token& token) {
  const bool is_name = token.IsIdentifier() && !IsKeyword(token.text) && !IsAttribute(token);
  return is_name || IsOneOf(token, {"::", "*", "&", "<"});
}

// A unit's parts for devices.
class DeviceNames {
 public:
  // Whether a host function can add to the device's code without naming what it adds: through a template, or a class
  // whose functions are virtual.
  bool may_be_added_unnamed() const { return may_be_added_unnamed_; }
  bool Declares(std::string_view name) const { return declared_.contains(name); }

  // Whether something for devices has the name of `function`, and may be a declaration of it: then cicc compiles its
  // body for devices. A member can only be one of a function whose name is qualified.
  bool MayDeclare(const FunctionName& function) const {
    return (function.is_qualified ? declared_ : declared_at_namespace_).contains(function.last);
  }

  // `declaration`: all of one at namespace scope.
  void Add(Tokens declaration) {
    AddTypes(declaration);
    if (!SpecifiersOf(declaration).any()) return;
    bool has_templates = false;
    for (const Token& token : declaration) {
      has_templates = has_templates || token.Is("template");
      if (token.Is("virtual")) may_be_added_unnamed_ = true;
    }
    size_t begin = 0;
    std::vector<bool> braces;  // whether they are a class's
    for (size_t at = 0; at < declaration.size();) {
      if (declaration[at].Is("(") || declaration[at].Is("[")) {
        at = AfterBrackets(declaration, at);
        continue;
      }
      if (IsOneOf(declaration[at], {"{", "}", ";"})) {
        const Tokens part = declaration.subspan(begin, at - begin);
        AddPart(part, declaration[at], has_templates, braces);
        if (IsOpen(declaration[at])) braces.push_back(BeginsClass(part));
        if (IsClose(declaration[at]) && !braces.empty()) braces.pop_back();
        begin = at + 1;
      }
      ++at;
    }
  }

 private:
  void AddTypes(Tokens declaration) {
    for (size_t at = 0; at + 1 < declaration.size(); ++at) {
      const Token& next = declaration[at + 1];
      const bool names_one = IsOneOf(declaration[at], {"struct", "class", "union", "enum", "using"});
      if (names_one && next.IsIdentifier() && !IsKeyword(next.text)) types_.insert(next.text);
    }
    const size_t size = declaration.size();
    const bool is_typedef = size > 2 && HasAtTop(declaration, "typedef");
    if (is_typedef && declaration[size - 2].IsIdentifier()) types_.insert(declaration[size - 2].text);
  }

  // The tokens after a function's parameters, up to the next declarator: `noexcept(...)`, `-> decltype(...)`, `: a(v)`.
  static size_t AfterFunction(Tokens part, size_t at) {
    bool is_type = false;
    while (at < part.size() && !part[at].Is(",")) {
      if (part[at].Is(":")) return part.size();
      is_type = is_type || part[at].Is("->");
      const bool has_angles = is_type && part[at].Is("<");
      at = IsOpen(part[at]) ? AfterBrackets(part, at) : has_angles ? AfterAngles(part, at) : at + 1;
    }
    return at;
  }

  // The tokens between two of `{`, `}` and `;`. `braces`: those around it.
  void AddPart(Tokens part, const Token& end, bool has_templates, const std::vector<bool>& braces) {
    const Specifiers specifiers = SpecifiersOf(part);
    if (!specifiers.any()) return;
    const bool is_member = !braces.empty() && braces.back() && !HasAtTop(part, "friend");
    bool is_function = false;
    bool is_variable = false;
    for (size_t at = 0; at < part.size();) {
      if (IsAttribute(part[at])) {
        at = AfterBrackets(part, at + 1);
      } else if (part[at].Is("template") && at + 1 < part.size() && part[at + 1].Is("<")) {
        at = AfterAngles(part, at + 1);
      } else if (TakesParentheses(part[at]) && at + 1 < part.size() && part[at + 1].Is("(")) {
        at = AfterBrackets(part, at + 1);
      } else if (part[at].Is("operator")) {
        at = AfterOperator(part, at);
      } else if (part[at].Is("[") && at + 1 < part.size() && part[at + 1].Is("[")) {  // `[[noreturn]]`
        at = AfterBrackets(part, at);
      } else if (part[at].Is("<") && !is_function && !is_variable) {  // of the type
        const size_t after = AfterAngles(part, at);
        const Tokens inside = part.subspan(at, after - at);
        const bool has_value = HasAssignment(inside);           // `Q<n<2> zero = a > b`
        is_variable = SpecifiersOf(inside).any() || has_value;  // or a lambda
        Declare(inside, is_member);
        at = after;
      } else if (part[at].Is("(")) {
        const size_t after = AfterBrackets(part, at);
        const Tokens inside = part.subspan(at, after - at);
        if (std::any_of(inside.begin(), inside.end(), [](const Token& token) { return token.Is("auto"); })) {
          has_templates = true;  // `void k(auto x)`
        }
        const bool is_followed = after < part.size() && IsOneOf(part[after], {"(", "[", "="});
        const bool wraps = inside.size() > 1 && (IsOneOf(inside[1], {"*", "&"}) ||
                                                 (inside[1].Is("::") && is_followed));  // `(*name)`, `(::A::f)(`
        const bool has_own = SpecifiersOf(inside).any();                                // a lambda
        if (wraps || has_own || IsName(inside)) Declare(inside, is_member && !has_own);
        if (wraps || has_own) is_variable = true;
        // In a class, `T x(1);` is no variable.
        const bool may_be_variable = !is_function && braces.empty() && end.Is(";");
        if (may_be_variable && !AreParameters(inside, part, types_)) is_variable = true;
        is_function = true;
        const bool is_list = !wraps && !has_own && !is_variable && !is_followed;
        at = is_list && !SpecifiersOf(part.subspan(after)).any() ? AfterFunction(part, after) : after;
      } else {
        if (!is_function && (IsAssignment(part, at) || part[at].Is("["))) is_variable = true;  // or a lambda
        const bool is_of_type = at + 1 < part.size() && GoesOnAfterType(part[at + 1]);
        Declare(part.subspan(at, 1), is_member || is_of_type);
        ++at;
      }
    }
    // A function is made when device code calls it.
    if (has_templates && (!is_function || is_variable || specifiers.other)) may_be_added_unnamed_ = true;
  }

  // `only_named`: they declare nothing at namespace scope.
  void Declare(Tokens tokens, bool only_named) {
    for (const Token& token : tokens) {
      if (!token.IsIdentifier() || IsKeyword(token.text)) continue;
      declared_.insert(token.text);
      if (!only_named) declared_at_namespace_.insert(token.text);
    }
  }

  Names types_;                  // of the unit, so far
  Names declared_;               // perhaps more
  Names declared_at_namespace_;  // of these; perhaps more
  bool may_be_added_unnamed_ = false;
};

// The body of a plain host function.
struct HostBody {
  FunctionName function;
  std::vector<std::string_view> names;   // sorted
  std::vector<std::string_view> unused;  // sorted
  Digest digest;
};

// Without attributes at its beginning that say nothing of devices: `[[nodiscard]]`, `__attribute__((host))`.
Tokens WithoutAttributes(Tokens head) {
  while (head.size() > 3) {
    const bool is_host = IsAttribute(head[0]) && IsSpecifier(head[3], "host");
    const bool has_brackets = head[0].Is("[") && head[1].Is("[");
    const Tokens attribute = head.first(AfterBrackets(head, is_host ? 1 : 0));
    if ((!is_host && !has_brackets) || SpecifiersOf(attribute).any()) break;
    head = head.subspan(attribute.size());
  }
  return head;
}

FunctionName PlainFunction(Tokens head) {
  head = WithoutAttributes(head);
  for (const Token& token : head) {
    if (IsAttribute(token) ||
        IsOneOf(token, {"template", "auto", "constexpr", "consteval", "operator", "friend", "requires", "concept",
                        "decltype", "typedef", "using", "asm", "__asm__", "__asm", "{", "#"})) {
      return {};
    }
  }
  const auto open = std::find_if(head.begin(), head.end(), [](const Token& token) { return token.Is("("); });
  const size_t at = open - head.begin();
  if (open == head.end() || at < 2 || !head[0].IsIdentifier() || !IsPlainIdentifier(head[at - 1].text)) return {};
  for (const Token& token : head.first(at)) {
    const bool is_of_type = token.IsIdentifier() || IsOneOf(token, {"::", "*", "&", "<", ">", ","}) ||
                            token.kind == TokenKind::kNumber || token.kind == TokenKind::kString;
    if (!is_of_type) return {};
  }
  for (const Token& token : head.subspan(AfterBrackets(head, at))) {
    if (!IsOneOf(token, {"const", "noexcept"})) return {};
  }
  return {.last = head[at - 1].text, .is_qualified = head[at - 2].Is("::")};
}

bool IsPlainBody(Tokens body) {
  if (SpecifiersOf(body).any()) return false;
  for (size_t at = 0; at + 1 < body.size(); ++at) {
    const Token& token = body[at];
    if (token.starts_directive && body[at + 1].kind != TokenKind::kString) return false;  // no line marker
    if (!token.IsIdentifier()) continue;
    if (IsAttribute(token) || IsOneOf(token, {"template", "extern", "asm", "__asm__", "__asm"})) return false;
  }
  return true;
}

// Whether the name at `at` may be declared there: `int n = 1`, `T n(1)`, `auto* n = p`, `, n = 1`.
bool MayDeclareVariable(Tokens tokens, size_t at) {
  const bool is_set = IsAssignment(tokens, at + 1);
  if (tokens[at - 1].Is(",")) return is_set || tokens[at + 1].Is(";");
  size_t type = at - 1;
  while (type > 0 && IsOneOf(tokens[type], {"*", "&"})) --type;
  const Token& last = tokens[type];
  const bool is_word = last.IsIdentifier() && (!IsKeyword(last.text) || IsTypeWord(last));
  if (type < at - 1) return is_set && (is_word || last.Is(">"));  // not `a * b;`
  if (last.Is(">")) return is_set || IsOneOf(tokens[at + 1], {";", "{"});
  return is_word && (is_set || IsOneOf(tokens[at + 1], {";", ",", "(", "{", "[", ":"}));
}

// The variables in `body`, sorted, of which cicc may say that they are never used, or only set. Some more, and some
// less: if the body has another use of the name.
std::vector<std::string_view> UnusedVariables(Tokens body) {
  Names declared;
  Names used;
  for (size_t at = 1; at + 1 < body.size(); ++at) {
    const bool is_name = body[at].IsIdentifier() && !IsKeyword(body[at].text);
    if (!is_name || IsOneOf(body[at - 1], {".", "->"})) continue;
    if (MayDeclareVariable(body, at)) {
      declared.insert(body[at].text);
    } else if (!IsAssignment(body, at + 1)) {
      used.insert(body[at].text);
    }
  }
  std::vector<std::string_view> unused;
  std::copy_if(declared.begin(), declared.end(), std::back_inserter(unused),
               [&](std::string_view name) { return !used.contains(name); });
  std::sort(unused.begin(), unused.end());
  return unused;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lexer_(text, storage_) {}

  std::optional<Digest> Read() {
    for (Token token; lexer_.Next(token);) {
      if (AsksForItsLine(token)) return std::nullopt;
      if (token.starts_directive || !token.in_directive) EndDirective();
      if (token.in_directive) {
        directive_.push_back(token);
      } else {
        Add(token);
      }
    }
    EndDirective();
    if (depth_ > 0) body_ = 0;  // it breaks off
    EndDeclaration();
    return Finish();
  }

 private:
  static constexpr int kMostBlocks = 8;  // in a declaration, up to its function's body

  void EndDirective() {
    if (directive_.empty()) return;
    if (!markers_.Counts(directive_)) return directive_.clear();
    if (declaration_.empty()) {
      text_.Add(directive_);
    } else {
      declaration_.insert(declaration_.end(), directive_.begin(), directive_.end());
    }
    directive_.clear();
  }

  void Add(const Token& token) {
    declaration_.push_back(token);
    if (IsOpen(token)) {
      if (depth_ == 0 && token.Is("{")) {
        if (OpensScope()) return EndDeclaration();
        // Few, so that the time stays linear.
        const bool may_begin = ++blocks_ <= kMostBlocks;
        if (may_begin && BeginsFunction(Tokens(declaration_).first(declaration_.size() - 1))) {
          body_ = declaration_.size() - 1;
        }
      }
      ++depth_;
    } else if (IsClose(token)) {
      --depth_;
      if (depth_ < 0 || (depth_ == 0 && body_ > 0)) EndDeclaration();  // < 0: the end of a namespace
    } else if (depth_ == 0 && token.Is(";")) {
      EndDeclaration();
    }
  }

  // `namespace A {`, `inline namespace A {`, `extern "C" {`.
  bool OpensScope() const {
    const size_t at = declaration_.front().Is("inline") ? 1 : 0;
    if (declaration_[at].Is("namespace")) return true;
    return declaration_.size() == 3 && declaration_[0].Is("extern") && declaration_[1].kind == TokenKind::kString;
  }

  void EndDeclaration() {
    const Tokens all(declaration_);
    const FunctionName function = body_ > 0 ? PlainFunction(all.first(body_)) : FunctionName();
    if (!function.last.empty() && IsPlainBody(all.subspan(body_))) {
      text_.Add(all.first(body_));
      AddHostBody(function, all.subspan(body_));
    } else {
      text_.Add(all);
      names_.Add(all);
    }
    declaration_.clear();
    blocks_ = 0;
    depth_ = 0;
    body_ = 0;
  }

  void AddHostBody(const FunctionName& function, Tokens body) {
    HostBody& added = bodies_.emplace_back();
    added.function = function;
    TokenDigest digest;
    for (const Token& token : body) {
      digest.Add(token);
      if (token.IsIdentifier()) added.names.push_back(token.text);
    }
    added.digest = digest.Finish();
    added.unused = UnusedVariables(body);
    std::sort(added.names.begin(), added.names.end());
    added.names.erase(std::unique(added.names.begin(), added.names.end()), added.names.end());
  }

  Digest Finish() {
    CanonicalHasher hasher("kernix-device-code");
    hasher.Field("text", text_.Finish());
    for (const HostBody& body : bodies_) {
      const bool counts_in_full = names_.may_be_added_unnamed() || names_.MayDeclare(body.function);
      if (counts_in_full) {
        hasher.Field("body", body.digest);
        continue;
      }
      std::vector<std::string_view> names;
      std::copy_if(body.names.begin(), body.names.end(), std::back_inserter(names),
                   [&](std::string_view name) { return names_.Declares(name); });
      AddList(hasher, "names", names);
      AddList(hasher, "unused", body.unused);
    }
    return hasher.Finish();
  }

  static void AddList(CanonicalHasher& hasher, std::string_view what, const std::vector<std::string_view>& names) {
    hasher.List(what, names.size());
    for (const std::string_view name : names) hasher.Field("name", name);
  }

  std::deque<std::string> storage_;
  Lexer lexer_;
  LineMarkers markers_;
  std::vector<Token> directive_;  // the line that is read
  // At namespace scope, the declaration that is read; its `{...}` outside of brackets; its open brackets; where the
  // body of a function begins, or 0.
  std::vector<Token> declaration_;
  int blocks_ = 0;
  int depth_ = 0;
  size_t body_ = 0;
  TokenDigest text_;  // without bodies of plain host functions
  std::vector<HostBody> bodies_;
  DeviceNames names_;
};

}  // namespace

std::optional<Digest> DigestOfDeviceCode(std::string_view preprocessed) { return Reader(preprocessed).Read(); }

}  // namespace kernix::language
