// SPDX-License-Identifier: Apache-2.0
//
// The words of commands: as a shell reads them, as a person types them, and as exec takes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix {

// The characters of a harmless word, for messages.
inline constexpr std::string_view kHarmlessCharacters = "letters, digits and _ . , = + : / % @ ~ - (@ and ~ not first)";

// Whether every shell reads `word`, unquoted in a line, as exactly this word: no split, no pattern, and no file of
// further arguments (@file, which the tools expand, not the shells).
bool IsHarmlessWord(std::string_view word);

// Whether a shell reads `text` between double quotes literally.
bool IsHarmlessQuoted(std::string_view text);

// `word`, quoted if a shell would read it otherwise.
std::string ShellQuote(std::string_view word);

// `argv` quoted for a shell.
std::string ShellCommand(const std::vector<std::string>& argv);

// Pointers to the texts, and a null pointer at the end. Valid as long as `texts` does not change.
std::vector<char*> ToArgv(std::vector<std::string>& texts);

}  // namespace kernix
