// SPDX-License-Identifier: Apache-2.0
#include "common/base/symbol_version.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix {

std::optional<SymbolVersion> SymbolVersion::Parse(std::string_view name) {
  const size_t split = name.rfind('_');
  if (split == std::string_view::npos) return std::nullopt;
  SymbolVersion version{std::string(name), std::string(name.substr(0, split)), {}};
  for (const absl::string_view part : absl::StrSplit(ToAbsl(name.substr(split + 1)), '.')) {
    if (!absl::SimpleAtoi(part, &version.number.emplace_back())) return std::nullopt;
  }
  return version;
}

}  // namespace kernix
