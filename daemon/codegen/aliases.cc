// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/aliases.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "daemon/base/strings.h"

namespace kernix::codegen {
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

}  // namespace

void Aliases::Read(std::string_view scope, Tokens declaration) {
  while (!declaration.empty() && declaration[0].text.starts_with('#')) declaration.remove_prefix(1);
  if (declaration.size() < 2) return;
  const Token& first = declaration[0];
  const Token& last = declaration.back();
  if (first.Is("using") && declaration.size() > 3 && declaration[2].Is("=")) {
    Add(scope, declaration[1].text, TypeOf(declaration.subspan(3)));
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
  if (!is_new && !SameTokens(known->second.tokens, tokens)) known->second.tokens = std::nullopt;
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

}  // namespace kernix::codegen
