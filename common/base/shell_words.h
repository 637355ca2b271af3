// SPDX-License-Identifier: Apache-2.0
//
// Commands as a shell reads them: words that it leaves alone, and quoting for a person's shell.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace kernix {

namespace shell_words_internal {
inline bool IsAlphanumeric(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
}  // namespace shell_words_internal

// The characters of a harmless word, for messages.
inline constexpr std::string_view kHarmlessCharacters = "letters, digits and _ . , = + : / % @ ~ - (@ and ~ not first)";

// Whether every shell reads `word`, unquoted in a line, as exactly this word: no split, no pattern, and no file of
// further arguments (@file, which the tools expand, not the shells).
inline bool IsHarmlessWord(std::string_view word) {
  constexpr std::string_view kSigns = "_.,=+:/%@~-";
  const auto harmless = [&](unsigned char c) {
    return shell_words_internal::IsAlphanumeric(c) || c >= 0x80 || kSigns.find(static_cast<char>(c)) != kSigns.npos;
  };
  return !word.empty() && word.front() != '@' && word.front() != '~' && std::all_of(word.begin(), word.end(), harmless);
}

// Whether a shell reads `text` between double quotes literally.
inline bool IsHarmlessQuoted(std::string_view text) {
  return text.find_first_of(std::string_view("$`\"\\\n\0", 6)) == std::string_view::npos;
}

// Commands as a person types them.

// `word`, quoted if a shell would read it otherwise.
std::string ShellQuote(std::string_view word);

// `argv` quoted for a shell.
std::string ShellCommand(const std::vector<std::string>& argv);

}  // namespace kernix
