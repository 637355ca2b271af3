// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/function_argument.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

void AddToken(std::string_view text, std::vector<std::string>& tokens) {
  const std::string token(absl::StripAsciiWhitespace(ToAbsl(text)));
  if (!token.empty()) tokens.push_back(token);
}

// '<' and '>' do not count as brackets, because they are also comparison operators.
std::vector<std::string> SplitTokens(std::string_view text) {
  std::vector<std::string> tokens;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    if (c != ',' || depth > 0) continue;
    AddToken(text.substr(begin, i - begin), tokens);
    begin = i + 1;
  }
  AddToken(text.substr(begin), tokens);
  return tokens;
}

}  // namespace

Function ParseFunction(std::string_view text) {
  const size_t equals = text.find('=');
  Function function{.name = std::string(absl::StripAsciiWhitespace(ToAbsl(text.substr(0, equals))))};
  if (equals != std::string_view::npos) function.tokens = SplitTokens(text.substr(equals + 1));
  return function;
}

}  // namespace kernix::ctl
