// SPDX-License-Identifier: Apache-2.0
//
// The version of a symbol, such as "GLIBCXX_3.4.30".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernix {

struct SymbolVersion {
  std::string name;         // "GLIBCXX_3.4.30"
  std::string family;       // "GLIBCXX"
  std::vector<int> number;  // 3, 4, 30

  // Returns nullopt for a name that does not end with a number, such as "GLIBC_PRIVATE".
  static std::optional<SymbolVersion> Parse(std::string_view name);
};

}  // namespace kernix
