// SPDX-License-Identifier: Apache-2.0
//
// nvcc hands what it is told to a shell, line by line. So what it is told holds nothing that a shell would read.
#pragma once

#include <algorithm>
#include <string_view>

namespace kernix {

namespace shell_words_internal {
inline bool IsAlphanumeric(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
}  // namespace shell_words_internal

// What a harmless word may hold, for people.
inline constexpr std::string_view kHarmlessCharacters = "letters, digits and _ . , = + : / % @ ~ - (@ and ~ not first)";

// Whether any shell takes `word`, which stands unquoted in a line, for nothing but itself: one word, no pattern, no
// file of further words (@file, which tools read, not shells).
inline bool IsHarmlessWord(std::string_view word) {
  constexpr std::string_view kSigns = "_.,=+:/%@~-";
  const auto harmless = [&](unsigned char c) {
    return shell_words_internal::IsAlphanumeric(c) || c >= 0x80 || kSigns.find(static_cast<char>(c)) != kSigns.npos;
  };
  return !word.empty() && word.front() != '@' && word.front() != '~' && std::all_of(word.begin(), word.end(), harmless);
}

// Whether a shell that reads `text` between double quotes takes it for nothing but itself.
inline bool IsHarmlessQuoted(std::string_view text) {
  return text.find_first_of(std::string_view("$`\"\\\n\0", 6)) == std::string_view::npos;
}

}  // namespace kernix
