// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/flags/flag_values.h"

#include <algorithm>

namespace kernix::toolchain {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSmallLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsLetter(char c) { return IsSmallLetter(c) || (c >= 'A' && c <= 'Z'); }

template <typename Test>
bool IsAllOf(std::string_view text, Test test) {
  return !text.empty() && std::all_of(text.begin(), text.end(), test);
}

bool IsNumber(std::string_view text) { return IsAllOf(text, IsDigit); }

bool IsNumbers(std::string_view text) {
  return IsAllOf(text, [](char c) { return IsDigit(c) || c == ':'; });
}

bool HoldsWordCharacters(std::string_view text) {
  constexpr std::string_view kSigns = "_+.-";
  return IsAllOf(text, [&](char c) { return IsLetter(c) || IsDigit(c) || kSigns.find(c) != kSigns.npos; });
}

bool IsWord(std::string_view text) { return HoldsWordCharacters(text) && text.front() != '-'; }

bool IsPair(std::string_view text) {
  const size_t equals = text.find('=');
  return equals != text.npos && IsWord(text.substr(0, equals)) && HoldsWordCharacters(text.substr(equals + 1));
}

bool IsWords(std::string_view text) {
  for (size_t comma = text.find(','); comma != text.npos; comma = text.find(',')) {
    if (!IsWord(text.substr(0, comma))) return false;
    text.remove_prefix(comma + 1);
  }
  return IsWord(text);
}

}  // namespace

bool IsOfKind(unsigned kinds, std::optional<std::string_view> value) {
  if (!value) return (kinds & kBare) != 0;
  return ((kinds & kNumber) != 0 && IsNumber(*value)) || ((kinds & kWord) != 0 && IsWord(*value)) ||
         ((kinds & kWords) != 0 && IsWords(*value)) || ((kinds & kNumbers) != 0 && IsNumbers(*value)) ||
         ((kinds & kPair) != 0 && IsPair(*value));
}

bool IsNameOf(const ListedFlag& flag, std::string_view name) {
  if (!flag.name.ends_with('*')) return name == flag.name;
  const std::string_view prefix = flag.name.substr(0, flag.name.size() - 1);
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return IsSmallLetter(c) || IsDigit(c) || c == '-' || c == '_'; });
}

NamedValue SplitValue(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) return {text, std::nullopt};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace kernix::toolchain
