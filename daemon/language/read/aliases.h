// SPDX-License-Identifier: Apache-2.0
//
// Type names that a source declares: `using Real = float;`, `typedef const BE::Tensor In;`, `struct Tensor { ... };`
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"

namespace kernix::language {

// The tokens behind a name; nullopt for a class or enum, and for a name with several meanings.
using AliasedType = std::optional<std::vector<Token>>;

class Aliases {
 public:
  // Reads `declaration`, which must end before its ';' or '{'. Ignores declarations that declare no type.
  void Read(absl::Span<const Token> declaration);

  // Null if the source declares no type of that name.
  const AliasedType* Find(std::string_view name) const;

  // Whether the source declares a class, struct or union of that name.
  bool HasClass(std::string_view name) const { return classes_.contains(name); }

 private:
  void Add(std::string_view name, AliasedType type);

  std::map<std::string_view, AliasedType> types_;
  std::set<std::string_view> classes_;
};

}  // namespace kernix::language
