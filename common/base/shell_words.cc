// SPDX-License-Identifier: Apache-2.0
#include "common/base/shell_words.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace kernix {
namespace {

bool IsShellSafe(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("-_=+./,:@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string ShellQuote(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsShellSafe)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ShellCommand(const std::vector<std::string>& argv) {
  std::string command;
  for (const std::string& word : argv) {
    if (!command.empty()) command += ' ';
    command += ShellQuote(word);
  }
  return command;
}

}  // namespace kernix
