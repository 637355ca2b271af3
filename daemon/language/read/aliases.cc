// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/aliases.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/language/read/declarations.h"

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
size_t AfterAttributes(Tokens tokens, size_t i) {
  while (i < tokens.size()) {
    const bool named = tokens[i].IsIdentifier() && i + 1 < tokens.size() && tokens[i + 1].Is("(");
    if (!named && !tokens[i].Is("[")) break;
    i = AfterBrackets(tokens, named ? i + 1 : i);
  }
  return i;
}

bool SameType(const AliasedType& a, const AliasedType& b) {
  const auto same = [](const Token& x, const Token& y) { return x.text == y.text; };
  return a.has_value() && b.has_value() && std::equal(a->begin(), a->end(), b->begin(), b->end(), same);
}

}  // namespace

void Aliases::Read(Tokens declaration) {
  while (!declaration.empty() && declaration[0].text.starts_with('#')) declaration.remove_prefix(1);
  const size_t size = declaration.size();
  if (size < 2) return;
  const Token& first = declaration[0];
  if (first.Is("using") && size > 3 && declaration[2].Is("=")) {
    Add(declaration[1].text, TypeOf(declaration.subspan(3)));
  } else if (first.Is("typedef") && declaration[size - 1].IsIdentifier()) {
    Add(declaration[size - 1].text, TypeOf(declaration.subspan(1, size - 2)));
  } else if (first.Is("struct") || first.Is("class") || first.Is("union") || first.Is("enum")) {
    const size_t begin = declaration[1].Is("class") || declaration[1].Is("struct") ? 2 : 1;
    const size_t name = AfterAttributes(declaration, begin);
    if (name >= size || !declaration[name].IsIdentifier()) return;
    Add(declaration[name].text, std::nullopt);
    if (!first.Is("enum")) classes_.insert(declaration[name].text);
  }
}

void Aliases::Add(std::string_view name, AliasedType type) {
  const auto [known, is_new] = types_.emplace(name, type);
  if (!is_new && !SameType(known->second, type)) known->second = std::nullopt;
}

const AliasedType* Aliases::Find(std::string_view name) const {
  const auto found = types_.find(name);
  return found == types_.end() ? nullptr : &found->second;
}

}  // namespace kernix::language
