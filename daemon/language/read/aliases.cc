// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/aliases.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "common/base/strings.h"

namespace kernix::language {
namespace {

using Tokens = absl::Span<const Token>;

constexpr size_t kMaxType = 50;  // tokens

using Type = std::optional<std::vector<Token>>;

bool SameTokens(const Type& a, const Type& b) {
  const auto same = [](const Token& x, const Token& y) { return x.text == y.text; };
  return a.has_value() && b.has_value() && std::equal(a->begin(), a->end(), b->begin(), b->end(), same);
}

// Only what reads the same as a parameter's type does: no array, no function, no pack.
Type TypeOf(Tokens tokens) {
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

// BE::Tensor, ::BE::Tensor
bool IsTensor(const Type& type) {
  if (!type.has_value() || type->size() < 3 || type->size() > 4) return false;
  const Token* end = type->data() + type->size();
  return (type->size() == 3 || type->front().Is("::")) && (end - 3)->Is("BE") && (end - 2)->Is("::") &&
         (end - 1)->Is("Tensor");
}

// A type of its own, or one of another library, such as torch::Tensor.
bool IsForeign(const Type& type) {
  return !type.has_value() ||
         (type->size() > 2 && type->front().IsIdentifier() && !type->front().Is("const") && !type->front().Is("BE") &&
          (*type)[1].Is("::") && type->back().IsIdentifier() && !type->back().Is("const"));
}

}  // namespace

void Aliases::Read(std::string_view scope, Tokens declaration) {
  while (!declaration.empty() && declaration[0].text.starts_with('#')) declaration.remove_prefix(1);
  if (declaration.size() < 2) return;
  const Token& first = declaration[0];
  const Token& last = declaration.back();
  if (first.Is("using") && declaration.size() > 3 && declaration[2].Is("=")) {
    Add(scope, declaration[1].text, TypeOf(declaration.subspan(3)));
  } else if (first.Is("using") && IsTensor(TypeOf(declaration.subspan(1)))) {
    Add(scope, last.text, TypeOf(declaration.subspan(1)));
  } else if (first.Is("typedef")) {
    if (last.IsIdentifier()) Add(scope, last.text, TypeOf(declaration.subspan(1, declaration.size() - 2)));
  } else if (first.Is("struct") || first.Is("class") || first.Is("union") || first.Is("enum")) {
    const bool scoped = declaration[1].Is("class") || declaration[1].Is("struct");
    const size_t name = scoped ? 2 : 1;
    if (name < declaration.size() && declaration[name].IsIdentifier()) {
      Add(scope, declaration[name].text, std::nullopt);
    }
  }
}

void Aliases::Add(std::string_view scope, std::string_view name, Type tokens) {
  const auto [known, is_new] = types_.emplace(StrCat(scope, name), AliasedType{std::string(scope), tokens});
  AliasedType& type = known->second;
  if (is_new || type.is_ambiguous || SameTokens(type.tokens, tokens)) return;
  if (name == "Tensor" && IsTensor(type.tokens) && IsForeign(tokens)) return;
  if (name == "Tensor" && IsTensor(tokens) && IsForeign(type.tokens)) {
    type.tokens = std::move(tokens);
    return;
  }
  type.is_ambiguous = type.tokens.has_value() || tokens.has_value();
  type.tokens = std::nullopt;
}

const AliasedType* Aliases::Find(std::string_view scope, std::string_view name) const {
  if (types_.empty()) return nullptr;
  while (true) {
    const auto found = types_.find(StrCat(scope, name));
    if (found != types_.end()) return &found->second;
    if (scope.empty()) return nullptr;
    const size_t before = scope.substr(0, scope.size() - 2).rfind("::");
    scope = before == std::string_view::npos ? std::string_view() : scope.substr(0, before + 2);
  }
}

}  // namespace kernix::language
