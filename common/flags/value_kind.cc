// SPDX-License-Identifier: Apache-2.0
#include "common/flags/value_kind.h"

#include <algorithm>

namespace kernix::flags {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSmallLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsLetter(char c) { return IsSmallLetter(c) || (c >= 'A' && c <= 'Z'); }

bool HoldsOnly(std::string_view text, std::string_view signs, bool (*is_plain)(char)) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return is_plain(c) || signs.find(c) != signs.npos; });
}

bool IsLetterOrDigit(char c) { return IsLetter(c) || IsDigit(c); }
bool IsSmallLetterOrDigit(char c) { return IsSmallLetter(c) || IsDigit(c); }

bool HoldsWordCharacters(std::string_view text) { return !text.empty() && HoldsOnly(text, "_+.-", IsLetterOrDigit); }

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

bool IsOfKind(unsigned kinds, std::string_view value) {
  const auto may_be = [&](unsigned kind) { return (kinds & kind) != 0; };
  return (may_be(kNumber) && !value.empty() && HoldsOnly(value, "", IsDigit)) || (may_be(kWord) && IsWord(value)) ||
         (may_be(kWords) && IsWords(value)) || (may_be(kNumbers) && !value.empty() && HoldsOnly(value, ":", IsDigit)) ||
         (may_be(kPair) && IsPair(value)) || (may_be(kEnding) && HoldsOnly(value, "-_", IsSmallLetterOrDigit)) ||
         may_be(kAnyValue);
}

}  // namespace kernix::flags
