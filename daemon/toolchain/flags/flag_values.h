// SPDX-License-Identifier: Apache-2.0
//
// What a flag's value may be, for lists of flags that are known to be harmless: a value of one of these kinds names no
// file, runs nothing and quotes nothing. Internal to CheckFlags().
#pragma once

#include <optional>
#include <string_view>

namespace kernix::toolchain {

// Kinds, which can be combined.
inline constexpr unsigned kBare = 1;      // none: "-fopenmp"
inline constexpr unsigned kNumber = 2;    // "64"
inline constexpr unsigned kWord = 4;      // letters, digits and _ + . - (not first: a tool could take it for a flag)
inline constexpr unsigned kWords = 8;     // one or several, with ',' between them
inline constexpr unsigned kNumbers = 16;  // with ':' between them, as alignments have it
inline constexpr unsigned kPair = 32;     // "name=word"

// Whether `value` (without its '='; nothing: there is none) is of one of `kinds`.
bool IsOfKind(unsigned kinds, std::optional<std::string_view> value);

// A flag, or the end of its name after what its list says. A name that ends with '*' stands for all that go on with
// small letters, digits, '-' and '_'.
struct ListedFlag {
  std::string_view name;
  unsigned kinds = kBare;
};

// Whether `name` is the flag's.
bool IsNameOf(const ListedFlag& flag, std::string_view name);

// "name" or "name=value".
struct NamedValue {
  std::string_view name;
  std::optional<std::string_view> value;
};
NamedValue SplitValue(std::string_view text);

// Whether one of `list` has this name, and its value's kind.
template <typename List>
bool IsListed(const List& list, std::string_view text) {
  const NamedValue split = SplitValue(text);
  for (const ListedFlag& flag : list) {
    if (IsNameOf(flag, split.name) && IsOfKind(flag.kinds, split.value)) return true;
  }
  return false;
}

}  // namespace kernix::toolchain
