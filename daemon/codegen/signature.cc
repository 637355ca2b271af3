// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/signature.h"

#include <algorithm>
#include <utility>

namespace kernix::codegen {
namespace {

using Tokens = absl::Span<const Token>;

// Sources come from other users: what is nested deeper, or longer, than people write is not read.
constexpr size_t kMaxNesting = 500;
constexpr size_t kMaxDeclaration = 200;
constexpr size_t kMaxOverloads = 16;
constexpr size_t kMaxTemplateArguments = 100;  // in tokens

enum class Scope {
  kTransparent,  // extern "C", a namespace without a name
  kNamedNamespace,
  kOpaque,  // a body, a class, an initialiser
};

// The index after the bracket that closes tokens[open], or tokens.size().
size_t AfterClosing(Tokens tokens, size_t open) {
  int depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].Is("(")) ++depth;
    if (tokens[i].Is(")") && --depth == 0) return i + 1;
  }
  return tokens.size();
}

bool Opens(const Token& token) { return token.Is("(") || token.Is("[") || token.Is("{"); }
bool Closes(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }

// tokens[open] is '<'. The index after its '>', where it begins template arguments; the next one, where it compares.
size_t AfterAngle(Tokens tokens, size_t open) {
  const size_t end = std::min(tokens.size(), open + kMaxTemplateArguments);
  if (open == 0 || !tokens[open - 1].IsIdentifier()) return open + 1;
  int angles = 0;
  int depth = 0;
  for (size_t i = open; i < end; ++i) {
    depth += Opens(tokens[i]) ? 1 : Closes(tokens[i]) ? -1 : 0;
    if (depth < 0 || (depth == 0 && tokens[i].Is("="))) break;
    if (depth == 0 && tokens[i].Is("<")) ++angles;
    if (depth == 0 && tokens[i].Is(">") && --angles == 0) return i + 1;
  }
  return open + 1;
}

// The index after [[attributes]] that begin at `i`.
size_t AfterAttributes(Tokens tokens, size_t i) {
  while (i + 1 < tokens.size() && tokens[i].Is("[") && tokens[i + 1].Is("[")) {
    int depth = 0;
    do {
      depth += Opens(tokens[i]) ? 1 : Closes(tokens[i]) ? -1 : 0;
      ++i;
    } while (i < tokens.size() && depth > 0);
  }
  return i;
}

bool Contains(Tokens tokens, std::string_view text) {
  return std::any_of(tokens.begin(), tokens.end(), [text](const Token& token) { return token.Is(text); });
}

// The commas between parameters are those outside all brackets.
std::vector<SignatureParameter> ReadParameters(Tokens list) {
  std::vector<SignatureParameter> parameters;
  if (list.empty() || (list.size() == 1 && list[0].Is("void"))) return parameters;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < list.size();) {
    depth += Opens(list[i]) ? 1 : Closes(list[i]) ? -1 : 0;
    if (list[i].Is(",") && depth == 0) {
      parameters.push_back(ReadParameter(list.subspan(begin, i - begin)));
      begin = i + 1;
    }
    i = list[i].Is("<") ? AfterAngle(list, i) : i + 1;
  }
  parameters.push_back(ReadParameter(list.subspan(begin)));
  return parameters;
}

// A declaration without names leaves open what its integer is for.
bool MayBeStream(const SignatureParameter& parameter) {
  return parameter.kind == ParameterClass::kScalar && parameter.scalar == AttributeType::kInt64 &&
         parameter.name.empty();
}

bool SameType(const SignatureParameter& x, const SignatureParameter& y) {
  if (x.kind != y.kind) {
    return (x.kind == ParameterClass::kStream && MayBeStream(y)) ||
           (y.kind == ParameterClass::kStream && MayBeStream(x));
  }
  return x.kind == ParameterClass::kOther ? x.text == y.text : x.scalar == y.scalar;
}

bool SameParameters(const Signature& a, const Signature& b) {
  return std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(), SameType);
}

// `known` and `other` declare the same function: its parameters have the first name that one of them gives.
void Merge(Signature& known, const Signature& other) {
  for (size_t i = 0; i < known.parameters.size(); ++i) {
    SignatureParameter& parameter = known.parameters[i];
    const bool has_default = parameter.has_default || other.parameters[i].has_default;
    if (parameter.name.empty()) parameter = other.parameters[i];
    parameter.has_default = has_default;
  }
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
  struct State {
    std::vector<Scope> scopes;
    int parentheses = 0;
    size_t declaration = 0;  // where the current declaration began
  };

  // Keeps account of scopes. The branches of a conditional all begin with what was open at the #if.
  void Follow(size_t i) {
    const Token& token = tokens_[i];
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
      FollowConditional(token);
    }
  }

  void FollowConditional(const Token& token) {
    if (token.Is("#if")) {
      saved_.push_back(state_);
    } else if (token.Is("#else") && !saved_.empty()) {
      state_ = saved_.back();
    } else if (token.Is("#endif") && !saved_.empty()) {
      saved_.pop_back();
    }
  }

  Scope ScopeOf(size_t brace) const {
    const Tokens head = Declaration(brace);
    if (!state_.scopes.empty() && state_.scopes.back() == Scope::kOpaque) return Scope::kOpaque;
    if (head.size() == 2 && head[0].Is("extern") && head[1].kind == TokenKind::kString) return Scope::kTransparent;
    if (!Contains(head, "namespace")) return Scope::kOpaque;
    return head.back().Is("namespace") || head[0].Is("inline") ? Scope::kTransparent : Scope::kNamedNamespace;
  }

  // The tokens of the current declaration before `end`; the last of them when there are many.
  Tokens Declaration(size_t end) const {
    const size_t begin = std::max(std::min(state_.declaration, end), end - std::min(end, kMaxDeclaration));
    return Tokens(tokens_).subspan(begin, end - begin);
  }

  bool IsCandidate(size_t i) const {
    if (!tokens_[i].IsIdentifier() || i + 1 >= tokens_.size()) return false;
    if (!tokens_[i + 1].Is("(") && !tokens_[i + 1].Is("[")) return false;
    if (state_.parentheses != 0 || (!state_.scopes.empty() && state_.scopes.back() == Scope::kOpaque)) return false;
    return names_.contains(tokens_[i].text);
  }

  // `i` is the name. Returns where to go on.
  size_t ReadFunction(size_t i) {
    const Tokens head = Declaration(i);
    const size_t open = AfterAttributes(tokens_, i + 1);
    if (open >= tokens_.size() || !tokens_[open].Is("(")) return i + 1;
    const size_t after = AfterClosing(tokens_, open);
    if (after >= tokens_.size() || !IsDeclaration(head, tokens_[after])) return after;
    const bool device_only =
        (Contains(head, "__device__") && !Contains(head, "__host__")) || Contains(head, "__global__");
    if (device_only || Contains(head, "template")) return after;
    Signature signature;
    const Tokens list = Tokens(tokens_).subspan(open + 1, after - open - 2);
    signature.parameters = ReadParameters(list);
    signature.has_conditional = Contains(list, "#if");
    signature.is_uncertain = signature.has_conditional || Contains(list, "...");
    signature.returns_void = ReturnsVoid(head, after);
    signature.namespace_depth =
        static_cast<int>(std::count(state_.scopes.begin(), state_.scopes.end(), Scope::kNamedNamespace));
    signature.source = tokens_[i].source;
    signature.line = tokens_[i].line;
    Add(std::string(tokens_[i].text), std::move(signature));
    return after;
  }

  // Tells a declaration from a use of the name.
  static bool IsDeclaration(Tokens head, const Token& after) {
    if (head.empty() || Contains(head, "=") || Contains(head, "using") || head.back().Is("::")) return false;
    static constexpr std::string_view kFollowers[] = {"{", ";", "->", "[", "#if", "#else", "#endif"};
    if (after.IsIdentifier()) return true;  // a macro from a header, "override", ...
    return std::any_of(std::begin(kFollowers), std::end(kFollowers), [&](std::string_view f) { return after.Is(f); });
  }

  bool ReturnsVoid(Tokens head, size_t after) const {
    if (Contains(head, "auto")) return TrailingTypeIsVoid(after);
    return Contains(head, "void") && !Contains(head, "*");
  }

  // `auto f() noexcept -> void {`
  bool TrailingTypeIsVoid(size_t i) const {
    const size_t end = std::min(tokens_.size(), i + kMaxDeclaration);
    while (i < end && !tokens_[i].Is("->") && !tokens_[i].Is("{") && !tokens_[i].Is(";")) ++i;
    return i + 2 < end && tokens_[i].Is("->") && tokens_[i + 1].Is("void") && !tokens_[i + 2].Is("*");
  }

  void Add(std::string name, Signature signature) {
    std::vector<Signature>& known = found_[std::move(name)];
    const auto same = [&](const Signature& other) {
      return other.namespace_depth == signature.namespace_depth && SameParameters(other, signature);
    };
    const auto declared = std::find_if(known.begin(), known.end(), same);
    if (declared != known.end()) {
      Merge(*declared, signature);
    } else if (known.size() < kMaxOverloads) {
      known.push_back(std::move(signature));
    }
  }

  const std::vector<Token>& tokens_;
  const NameSet& names_;
  State state_;
  std::vector<State> saved_;
  SignatureMap found_;
};

}  // namespace

bool Signature::TakesTensors() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const SignatureParameter& p) { return p.HoldsTensors(); });
}

SignatureMap FindSignatures(const std::vector<Token>& tokens, const NameSet& names) {
  return Finder(tokens, names).Run();
}

}  // namespace kernix::codegen
