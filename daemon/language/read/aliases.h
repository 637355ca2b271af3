// SPDX-License-Identifier: Apache-2.0
//
// Names that a source gives to types: `using T = BE::Tensor;`, `typedef const BE::Tensor In;`, `struct Tensor { ...
// };`, `using BE::Tensor;`
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"

namespace kernix::language {

// What a name stands for: tokens that are read in the namespace `scope`; none where it is a type of its own, or has
// several meanings. Of `Tensor` BE::Tensor is the one that counts among others: only that can a handler pass.
struct AliasedType {
  std::string scope;
  std::optional<std::vector<Token>> tokens;
  bool is_ambiguous = false;
};

class Aliases {
 public:
  // Reads `declaration`, which begins in the namespace `scope` ("a::b::") and ends before its ';' or '{'; marks of
  // conditionals may be in front. What is no declaration of a type has no effect.
  void Read(std::string_view scope, absl::Span<const Token> declaration);

  // What `name` means in `scope`; null when the source does not say.
  const AliasedType* Find(std::string_view scope, std::string_view name) const;

 private:
  void Add(std::string_view scope, std::string_view name, std::optional<std::vector<Token>> tokens);

  std::map<std::string, AliasedType, std::less<>> types_;  // by qualified name
};

}  // namespace kernix::language
