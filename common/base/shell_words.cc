// SPDX-License-Identifier: Apache-2.0
#include "common/base/shell_words.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

namespace kernix {
namespace {

bool IsAlphanumericOr(std::string_view signs, char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || signs.find(c) != std::string_view::npos;
}

}  // namespace

bool IsHarmlessWord(std::string_view word) {
  const auto harmless = [](char c) {
    return IsAlphanumericOr("_.,=+:/%@~-", c) || static_cast<unsigned char>(c) >= 0x80;
  };
  return !word.empty() && word.front() != '@' && word.front() != '~' && std::all_of(word.begin(), word.end(), harmless);
}

bool IsHarmlessQuoted(std::string_view text) {
  return text.find_first_of(std::string_view("$`\"\\\n\0", 6)) == std::string_view::npos;
}

std::string ShellQuote(std::string_view word) {
  const auto is_safe = [](char c) { return IsAlphanumericOr("-_=+./,:@%", c); };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_safe)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ShellCommand(const std::vector<std::string>& argv) {
  return absl::StrJoin(argv, " ", [](std::string* command, const std::string& word) { *command += ShellQuote(word); });
}

std::vector<char*> ToArgv(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace kernix
