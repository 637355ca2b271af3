// SPDX-License-Identifier: Apache-2.0
//
// Names that a source gives to types: `using Real = float;`, `typedef const BE::Tensor In;`, `struct Tensor { ... };`
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"

namespace kernix::language {

// The tokens that a name stands for; nullopt for a type of its own, and for a name that stands for several.
using AliasedType = std::optional<std::vector<Token>>;

class Aliases {
 public:
  // Reads `declaration`, which ends before its ';' or '{'. What is no declaration of a type has no effect.
  void Read(absl::Span<const Token> declaration);

  // Null when the source declares no type of that name.
  const AliasedType* Find(std::string_view name) const;

 private:
  void Add(std::string_view name, AliasedType type);

  std::map<std::string_view, AliasedType> types_;
};

}  // namespace kernix::language
