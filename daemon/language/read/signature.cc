// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/signature.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "common/base/strings.h"
#include "daemon/language/read/declarations.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

constexpr size_t kMaxType = 50;  // tokens

// The type if it can be a parameter's type, that is, not an array, a function or a pack.
AliasedType TypeOf(Tokens tokens) {
  static constexpr std::string_view kPlain[] = {"::", "<", ">", ",", "*", "&"};
  const auto is_plain = [](const Token& token) {
    return token.IsIdentifier() || token.kind == TokenKind::kNumber ||
           std::find(std::begin(kPlain), std::end(kPlain), token.text) != std::end(kPlain);
  };
  if (tokens.empty() || tokens.size() > kMaxType || !std::all_of(tokens.begin(), tokens.end(), is_plain)) {
    return std::nullopt;
  }
  return std::vector<Token>(tokens.begin(), tokens.end());
}

// The index of the first token from `i` on that belongs to no alignas(16), __attribute__((...)), or [[...]].
size_t AfterClassAttributes(Tokens tokens, size_t i) {
  while (i < tokens.size()) {
    const bool named = tokens[i].IsIdentifier() && i + 1 < tokens.size() && tokens[i + 1].Is("(");
    if (!named && !tokens[i].Is("[")) break;
    i = AfterBrackets(tokens, named ? i + 1 : i);
  }
  return i;
}

bool SameAlias(const AliasedType& a, const AliasedType& b) {
  const auto same = [](const Token& x, const Token& y) { return x.text == y.text; };
  return a.has_value() && b.has_value() && std::equal(a->begin(), a->end(), b->begin(), b->end(), same);
}

}  // namespace

void Aliases::Read(Tokens declaration) {
  while (!declaration.empty() && declaration[0].text.starts_with('#')) declaration.remove_prefix(1);
  const size_t size = declaration.size();
  if (size < 2) return;
  const Token& first = declaration[0];
  if ((first.Is("using") || first.Is("namespace")) && size > 3 && declaration[2].Is("=")) {
    Add(declaration[1].text, TypeOf(declaration.subspan(3)));
  } else if (first.Is("typedef") && declaration[size - 1].IsIdentifier()) {
    Add(declaration[size - 1].text, TypeOf(declaration.subspan(1, size - 2)));
  } else if (first.Is("struct") || first.Is("class") || first.Is("union") || first.Is("enum")) {
    const size_t begin = declaration[1].Is("class") || declaration[1].Is("struct") ? 2 : 1;
    const size_t name = AfterClassAttributes(declaration, begin);
    if (name >= size || !declaration[name].IsIdentifier()) return;
    Add(declaration[name].text, std::nullopt);
    if (!first.Is("enum")) classes_.insert(declaration[name].text);
  }
}

void Aliases::Add(std::string_view name, AliasedType type) {
  const auto [known, is_new] = types_.emplace(name, type);
  if (!is_new && !SameAlias(known->second, type)) known->second = std::nullopt;
}

const AliasedType* Aliases::Find(std::string_view name) const {
  const auto found = types_.find(name);
  return found == types_.end() ? nullptr : &found->second;
}

namespace {

// Sources come from other users: declarations that are longer or more deeply nested than people write are not read.
constexpr size_t kMaxNesting = 200;
constexpr size_t kMaxDeclaration = 200;
constexpr size_t kMaxScope = 1000;  // characters
constexpr size_t kMaxOverloads = 16;
constexpr size_t kMaxTemplateArguments = 100;  // in tokens
constexpr size_t kMaxInstance = 1'000;         // in tokens; defaults that use defaults could make any number

enum class Scope {
  kTransparent,  // extern "C", an unnamed namespace
  kNamedNamespace,
  kOpaque,  // a body, a class, an initialiser
};

// tokens[open] is '<'. Returns the index after its '>' if it begins template arguments; the next index if it is a
// comparison.
size_t AfterAngle(Tokens tokens, size_t open) {
  const size_t end = std::min(tokens.size(), open + kMaxTemplateArguments);
  if (open == 0 || !tokens[open - 1].IsIdentifier()) return open + 1;
  int angles = 0;
  int depth = 0;
  for (size_t i = open; i < end; ++i) {
    depth += IsOpen(tokens[i]) ? 1 : IsClose(tokens[i]) ? -1 : 0;
    if (depth < 0 || (depth == 0 && tokens[i].Is("="))) break;
    if (depth == 0 && tokens[i].Is("<")) ++angles;
    if (depth == 0 && tokens[i].Is(">") && --angles == 0) return i + 1;
  }
  return open + 1;
}

// The index after the [[attributes]] that begin at `i`.
size_t AfterAttributes(Tokens tokens, size_t i) {
  while (i + 1 < tokens.size() && tokens[i].Is("[") && tokens[i + 1].Is("[")) {
    i = AfterBrackets(tokens, i);
  }
  return i;
}

// Whether there is a '=' that is not part of '==', '<=', '>=' or '!='.
bool HasAssignment(Tokens tokens) {
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (IsAssignment(tokens, at)) return true;
  }
  return false;
}

// Only commas outside all brackets separate parameters.
std::vector<SignatureParameter> ReadParameters(Tokens list, const Aliases& aliases, bool of_kernel) {
  std::vector<SignatureParameter> parameters;
  if (list.empty() || (list.size() == 1 && list[0].Is("void"))) return parameters;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < list.size() && parameters.size() < kMaxParameters;) {
    depth += IsOpen(list[i]) ? 1 : IsClose(list[i]) ? -1 : 0;
    if (list[i].Is(",") && depth == 0) {
      parameters.push_back(ReadParameter(list.subspan(begin, i - begin), aliases, of_kernel));
      begin = i + 1;
    }
    i = list[i].Is("<") ? AfterAngle(list, i) : i + 1;
  }
  parameters.push_back(ReadParameter(list.subspan(begin), aliases, of_kernel));
  return parameters;
}

// In a declaration without parameter names, an int64_t may be the stream.
bool MayBeStream(const SignatureParameter& parameter) {
  return parameter.kind == ParameterClass::kScalar && parameter.scalar == AttributeType::kInt64 &&
         parameter.name.empty();
}

// The text before and after the parameter's name, without spaces.
std::string TypeText(const SignatureParameter& parameter) {
  std::string text = parameter.text;
  const size_t name = parameter.name.empty() ? std::string::npos : text.rfind(parameter.name);
  if (name != std::string::npos) text.erase(name, parameter.name.size());
  std::erase(text, ' ');
  return text;
}

bool SameType(const SignatureParameter& x, const SignatureParameter& y) {
  if (x.kind != y.kind) {
    return (x.kind == ParameterClass::kStream && MayBeStream(y)) ||
           (y.kind == ParameterClass::kStream && MayBeStream(x));
  }
  if (x.kind == ParameterClass::kOther) return TypeText(x) == TypeText(y);
  if (x.is_pointer && x.element.empty()) return y.is_pointer && TypeText(x) == TypeText(y);
  return x.scalar == y.scalar && x.element == y.element && x.rank == y.rank && x.lanes == y.lanes &&
         x.is_pointer == y.is_pointer;
}

bool SameButForConst(const SignatureParameter& x, const SignatureParameter& y) {
  const bool tensors = x.IsTensor() && y.IsTensor() && x.element.empty() && y.element.empty();
  return SameType(x, y) || (tensors && x.by_value && y.by_value);
}

bool SameParameters(const Signature& a, const Signature& b) {
  return std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(), SameType);
}

// A default argument certainly exists if all declarations have it, or one outside of conditionals has it.
void MergeDefaults(SignatureParameter& parameter, const SignatureParameter& other) {
  parameter.default_is_certain |= other.default_is_certain;
  parameter.has_default = parameter.default_is_certain || (parameter.has_default && other.has_default);
}

// `known` and `other` declare the same function. Each parameter keeps the first name that a declaration gives it.
void Merge(Signature& known, const Signature& other) {
  known.is_definition = known.is_definition || other.is_definition;
  for (size_t i = 0; i < known.parameters.size(); ++i) {
    SignatureParameter merged = known.parameters[i].name.empty() ? other.parameters[i] : known.parameters[i];
    MergeDefaults(merged, known.parameters[i].name.empty() ? known.parameters[i] : other.parameters[i]);
    known.parameters[i] = std::move(merged);
  }
}

// `tokens` with template parameters replaced; the new tokens get the place of their use. After kMaxInstance tokens,
// nothing more is replaced.
std::vector<Token> Substituted(const std::vector<Token>& tokens,
                               const std::map<std::string_view, std::vector<Token>>& values) {
  std::vector<Token> result;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool qualified = i > 0 && (tokens[i - 1].Is("::") || tokens[i - 1].Is(".") || tokens[i - 1].Is("->"));
    const auto value = values.find(tokens[i].text);
    if (qualified || !tokens[i].IsIdentifier() || value == values.end() || result.size() > kMaxInstance) {
      result.push_back(tokens[i]);
      continue;
    }
    bool space = tokens[i].space_before;
    for (Token token : value->second) {
      token.source = tokens[i].source;
      token.line = tokens[i].line;
      token.space_before |= space;
      space = false;
      result.push_back(token);
    }
  }
  return result;
}

// Reads one template parameter. A pack has no single value, so it is treated as unnamed.
TemplateParameter ReadTemplateParameter(Tokens tokens) {
  TemplateParameter parameter;
  const auto equals = std::find_if(tokens.begin(), tokens.end(), [](const Token& token) { return token.Is("="); });
  const Tokens declared = tokens.first(static_cast<size_t>(equals - tokens.begin()));
  const size_t size = declared.size();
  const bool has_name = size > 1 && declared[size - 1].IsIdentifier() && !IsKeyword(declared[size - 1].text) &&
                        !declared[size - 2].Is("::") && !declared[size - 2].Is("...");
  if (has_name) parameter.name = std::string(declared[size - 1].text);
  if (equals != tokens.end()) parameter.value.assign(equals + 1, tokens.end());
  return parameter;
}

// Removes "template <...>" from the front of `head` and returns its parameters; a specialisation has none.
std::vector<TemplateParameter> ConsumeTemplate(Tokens& head) {
  std::vector<TemplateParameter> parameters;
  const auto word = std::find_if(head.begin(), head.end(), [](const Token& token) { return token.Is("template"); });
  if (word == head.end()) return parameters;
  const size_t open = static_cast<size_t>(word - head.begin()) + 1;
  int depth = 0;
  int round = 0;  // inside parentheses, '<' is a comparison
  size_t begin = open + 1;
  for (size_t i = open; i < head.size(); ++i) {
    round += IsOpen(head[i]) ? 1 : IsClose(head[i]) ? -1 : 0;
    if (round == 0 && head[i].Is("<")) ++depth;
    if (round == 0 && head[i].Is(">")) --depth;
    if (round > 0 || depth > 1 || (depth == 1 && !head[i].Is(","))) continue;
    if (i > begin) parameters.push_back(ReadTemplateParameter(head.subspan(begin, i - begin)));
    begin = i + 1;
    if (depth <= 0) break;
  }
  head.remove_prefix(std::min(begin, head.size()));
  return parameters;
}

// The names that qualify a member, from the tokens between "namespace" and '{': "a", "c" of `a::inline b::c
// [[attribute]]`. Skips unknown macros.
std::vector<Token> NamesOfNamespace(Tokens tokens) {
  std::vector<Token> names;
  bool expected = true;
  bool skipped = false;
  for (size_t i = 0; i < tokens.size();) {
    if (tokens[i].Is("(") || (tokens[i].Is("[") && i + 1 < tokens.size() && tokens[i + 1].Is("["))) {
      i = tokens[i].Is("(") ? AfterBrackets(tokens, i) : AfterAttributes(tokens, i);
      continue;
    }
    const bool called = i + 1 < tokens.size() && tokens[i + 1].Is("(");
    if (tokens[i].Is("inline")) {
      skipped = true;
    } else if (tokens[i].Is("::")) {
      expected = true;
    } else if (expected && !called && tokens[i].IsIdentifier()) {
      if (!skipped) names.push_back(tokens[i]);
      expected = skipped = false;
    }
    ++i;
  }
  return names;
}

class Finder {
 public:
  Finder(const std::vector<Token>& tokens, const NameSet& names) : tokens_(tokens), names_(names) {}

  SignatureMap Run() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (state_.scopes.size() > kMaxNesting || saved_.size() > kMaxNesting) break;
      if (IsCandidate(i)) {
        i = ReadFunction(i) - 1;
      } else {
        Follow(i);
      }
    }
    return std::move(found_);
  }

 private:
  struct OpenScope {
    Scope kind;
    std::string_view name;  // "a::b::" of all enclosing named namespaces
  };
  struct State {
    std::vector<OpenScope> scopes;
    int parentheses = 0;
    size_t declaration = 0;  // where the current declaration began
    bool open = false;       // at an #if: a declaration had begun before it
  };

  // Tracks scopes. Every branch of a conditional starts in the state at the #if.
  void Follow(size_t i) {
    const Token& token = tokens_[i];
    if (!InOpaque() && state_.parentheses == 0 && (token.Is("{") || token.Is(";"))) {
      aliases_->Read(Declaration(i));
    }
    if (token.Is("{")) {
      state_.scopes.push_back(ScopeOf(i));
      state_.declaration = i + 1;
    } else if (token.Is("}")) {
      if (!state_.scopes.empty()) state_.scopes.pop_back();
      state_.declaration = i + 1;
    } else if (token.Is(";")) {
      state_.declaration = i + 1;
    } else if (token.Is("(")) {
      ++state_.parentheses;
    } else if (token.Is(")")) {
      --state_.parentheses;
    } else {
      FollowConditional(i);
    }
  }

  // If no declaration began before the directive, one begins after it.
  void FollowConditional(size_t i) {
    const Token& token = tokens_[i];
    const bool between = state_.declaration == i;
    if (between && token.text.starts_with('#')) state_.declaration = i + 1;
    if (token.Is("#if")) {
      state_.open = !between;
      saved_.push_back(state_);
    } else if (token.Is("#else") && !saved_.empty()) {
      state_ = saved_.back();
      if (between && !state_.open) state_.declaration = i + 1;
    } else if (token.Is("#endif") && !saved_.empty()) {
      saved_.pop_back();
    }
  }

  OpenScope ScopeOf(size_t brace) {
    const Tokens head = Declaration(brace);
    if (InOpaque()) return {Scope::kOpaque, ""};
    if (head.size() == 2 && head[0].Is("extern") && head[1].kind == TokenKind::kString)
      return {Scope::kTransparent, ScopeName()};
    const auto word = std::find_if(head.begin(), head.end(), [](const Token& token) { return token.Is("namespace"); });
    if (word == head.end()) return {Scope::kOpaque, ""};
    std::string name(ScopeName());
    const size_t around = name.size();
    for (const Token& token : NamesOfNamespace(head.subspan(static_cast<size_t>(word - head.begin()) + 1))) {
      if (name.size() + token.text.size() > kMaxScope) return {Scope::kOpaque, ""};
      name += StrCat(token.text, "::");
    }
    if (name.size() == around || head[0].Is("inline")) return {Scope::kTransparent, ScopeName()};
    return {Scope::kNamedNamespace, scope_names_.emplace_back(std::move(name))};
  }

  // "a::b::": all open named namespaces.
  std::string_view ScopeName() const { return state_.scopes.empty() ? "" : state_.scopes.back().name; }

  bool InOpaque() const { return !state_.scopes.empty() && state_.scopes.back().kind == Scope::kOpaque; }

  // The tokens of the current declaration before `end`; only the last ones if there are many.
  Tokens Declaration(size_t end) const {
    const size_t begin = std::max(std::min(state_.declaration, end), end - std::min(end, kMaxDeclaration));
    return Tokens(tokens_).subspan(begin, end - begin);
  }

  bool IsCandidate(size_t i) const {
    if (!tokens_[i].IsIdentifier() || i + 1 >= tokens_.size()) return false;
    if (!tokens_[i + 1].Is("(") && !tokens_[i + 1].Is("[")) return false;
    if (state_.parentheses != 0 || InOpaque()) return false;
    return names_.contains(tokens_[i].text);
  }

  // `i` is the name. Returns the index at which to continue.
  size_t ReadFunction(size_t i) {
    Tokens head = Declaration(i);
    const bool is_template = Contains(head, "template");
    Signature signature;
    signature.template_parameters = ConsumeTemplate(head);
    const size_t open = AfterAttributes(tokens_, i + 1);
    if (open >= tokens_.size() || !tokens_[open].Is("(")) return i + 1;
    const size_t after = AfterBrackets(tokens_, open);
    if (after >= tokens_.size() || !IsDeclaration(head, tokens_[after])) return after;
    const bool device_only = Contains(head, "__device__") && !Contains(head, "__host__");
    if (device_only || is_template != !signature.template_parameters.empty()) return after;
    const Tokens list = Tokens(tokens_).subspan(open + 1, after - open - 2);
    signature.scope = std::string(ScopeName());
    signature.is_global = Contains(head, "__global__");
    if (is_template) {
      signature.list.assign(list.begin(), list.end());
      signature.aliases = aliases_;
    } else {
      signature.parameters = ReadParameters(list, *aliases_, signature.is_global);
    }
    signature.has_conditional = Contains(list, "#if");
    signature.is_uncertain = signature.has_conditional || Contains(list, "...");
    signature.returns_void = signature.is_global || ReturnsVoid(head, after);
    signature.is_definition = BodyFollows(after);
    signature.in_conditional = !saved_.empty();
    signature.source = tokens_[i].source;
    signature.line = tokens_[i].line;
    AddSignature(found_[std::string(tokens_[i].text)], std::move(signature));
    return after;
  }

  // Distinguishes a declaration from a use of the name.
  static bool IsDeclaration(Tokens head, const Token& after) {
    if (head.empty() || HasAssignment(head) || Contains(head, "using") || head.back().Is("::")) return false;
    static constexpr std::string_view kFollowers[] = {"{", ";", "->", "[", "#if", "#else", "#endif"};
    if (after.IsIdentifier()) return true;  // a macro from a header, "override", ...
    return std::any_of(std::begin(kFollowers), std::end(kFollowers), [&](std::string_view f) { return after.Is(f); });
  }

  bool ReturnsVoid(Tokens head, size_t after) const {
    if (Contains(head, "auto")) return TrailingTypeIsVoid(after);
    return Contains(head, "void") && !Contains(head, "*");
  }

  // Skips what may appear between a parameter list and a body: noexcept(...), -> void, requires ..., a macro.
  bool BodyFollows(size_t i) const {
    const Tokens tokens = Tokens(tokens_).first(std::min(tokens_.size(), i + kMaxDeclaration));
    while (i < tokens.size() && !tokens[i].Is("{") && !tokens[i].Is(";") && !tokens[i].Is("}")) {
      i = tokens[i].Is("(") ? AfterBrackets(tokens, i) : i + 1;
    }
    return i < tokens.size() && tokens[i].Is("{");
  }

  // `auto f() noexcept -> void {`
  bool TrailingTypeIsVoid(size_t i) const {
    const size_t end = std::min(tokens_.size(), i + kMaxDeclaration);
    while (i < end && !tokens_[i].Is("->") && !tokens_[i].Is("{") && !tokens_[i].Is(";")) ++i;
    return i + 2 < end && tokens_[i].Is("->") && tokens_[i + 1].Is("void") && !tokens_[i + 2].Is("*");
  }

  const std::vector<Token>& tokens_;
  const NameSet& names_;
  State state_;
  std::vector<State> saved_;
  std::deque<std::string> scope_names_;
  const std::shared_ptr<Aliases> aliases_ = std::make_shared<Aliases>();
  SignatureMap found_;
};

}  // namespace

bool Signature::TakesTensors() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const SignatureParameter& p) { return p.HoldsTensors(); });
}

Signature Instantiate(const Signature& pattern, absl::Span<const std::string> arguments, size_t& budget) {
  std::map<std::string_view, std::vector<Token>> values;
  for (size_t i = 0; i < pattern.template_parameters.size(); ++i) {
    const TemplateParameter& parameter = pattern.template_parameters[i];
    const std::vector<Token>& value = parameter.value;
    if (i < arguments.size()) {
      values[parameter.name] = Lex(arguments[i], 0).tokens;
    } else if (!value.empty() && !parameter.name.empty()) {
      values[parameter.name] = Substituted(value, values);
    }
  }
  Signature signature = pattern;
  signature.template_parameters.clear();
  signature.list.clear();
  const std::vector<Token> list = Substituted(pattern.list, values);
  budget -= std::min(budget, list.size());
  signature.parameters = ReadParameters(list, *pattern.aliases, pattern.is_global);
  for (SignatureParameter& parameter : signature.parameters) {
    for (const Token& token : Lex(parameter.text, 0).tokens) {
      const bool is_parameter =
          std::any_of(pattern.template_parameters.begin(), pattern.template_parameters.end(),
                      [&](const TemplateParameter& of_template) { return token.text == of_template.name; });
      if (is_parameter && !values.contains(token.text)) parameter.is_deduced = true;
    }
  }
  signature.aliases = nullptr;
  return signature;
}

bool DifferInConst(const Signature& a, const Signature& b) {
  return a.scope == b.scope && std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                                          b.parameters.end(), SameButForConst);
}

void PreferHostFunctions(std::vector<Signature>& signatures) {
  const auto is_global = [](const Signature& signature) { return signature.is_global; };
  if (!std::all_of(signatures.begin(), signatures.end(), is_global)) std::erase_if(signatures, is_global);
}

void AddSignature(std::vector<Signature>& known, Signature signature) {
  const bool is_template = !signature.template_parameters.empty();
  for (SignatureParameter& parameter : signature.parameters) {
    parameter.default_is_certain |= parameter.has_default && !signature.in_conditional;
  }
  const auto same = [&](const Signature& other) {
    return !is_template && other.template_parameters.empty() && other.scope == signature.scope &&
           other.is_global == signature.is_global && SameParameters(other, signature);
  };
  const auto declared = std::find_if(known.begin(), known.end(), same);
  if (declared != known.end()) {
    Merge(*declared, signature);
  } else if (known.size() < kMaxOverloads) {
    known.push_back(std::move(signature));
  }
}

SignatureMap FindSignatures(const std::vector<Token>& tokens, const NameSet& names) {
  return Finder(tokens, names).Run();
}

}  // namespace kernix::language
