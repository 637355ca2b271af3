// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/flags/macro_flags.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/toolchain/flags/flag_context.h"

namespace kernix::toolchain {
namespace {

constexpr std::string_view kNotOneLine = "its value would continue on the next line";
constexpr size_t kLongestRawDelimiter = 16;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

bool IsIdentifier(std::string_view text) {
  return !text.empty() && IsNameStart(text.front()) && std::all_of(text.begin(), text.end(), IsNamePart);
}

// "X", or "F(a, b...)".
bool IsMacroName(std::string_view text) {
  const size_t open = text.find('(');
  if (open == text.npos) return IsIdentifier(text);
  const std::string_view parameters = text.substr(open + 1);
  const auto fits = [](char c) { return IsNamePart(c) || c == ',' || c == ' ' || c == '.'; };
  return IsIdentifier(text.substr(0, open)) && parameters.ends_with(')') &&
         std::all_of(parameters.begin(), parameters.end() - 1, fits);
}

// Whether every comment that could begin in `value`, inside a literal or not, also ends in it.
bool ClosesComments(std::string_view value) {
  const size_t open = value.rfind("/*");
  return open == value.npos || value.find("*/", open + 2) != value.npos;
}

// The same for R"x(...)x". The quote that ends a literal with an R at its end is not followed by such a beginning.
bool ClosesRawStrings(std::string_view value) {
  for (size_t at = value.find("R\""); at != value.npos; at = value.find("R\"", at + 1)) {
    const std::string_view rest = value.substr(at + 2);
    const std::string_view delimiter = rest.substr(0, rest.find('('));
    const bool opens = delimiter.size() < rest.size() && delimiter.size() <= kLongestRawDelimiter &&
                       delimiter.find_first_of(" )\\\t\"") == delimiter.npos;
    if (opens && rest.find(StrCat(")", delimiter, "\""), delimiter.size()) == rest.npos) return false;
  }
  return true;
}

absl::Status CheckValue(std::string_view flag, std::string_view value) {
  const auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; };
  if (std::any_of(value.begin(), value.end(), is_control)) return RefuseFlag(flag, "it contains control characters");
  const size_t end = value.find_last_not_of(" \t");
  const bool continued = end != value.npos && value[end] == '\\';
  // Compilers that support trigraphs read "??/" as a backslash.
  if (continued || value.find("?\?/") != value.npos) return RefuseFlag(flag, kNotOneLine);
  if (!ClosesComments(value) || !ClosesRawStrings(value)) return RefuseFlag(flag, kNotOneLine);
  return absl::OkStatus();
}

absl::Status NoIdentifier(std::string_view flag, std::string_view name) {
  return RefuseFlag(flag, StrCat("\"", name, "\" is not a macro name"));
}

}  // namespace

absl::Status AddDefinition(std::string_view flag, std::string_view text, std::vector<std::string>& lines) {
  const size_t equals = text.find('=');
  std::string_view name = text.substr(0, equals);
  while (name.ends_with(' ')) name.remove_suffix(1);
  const std::string_view value = equals == text.npos ? "1" : text.substr(equals + 1);
  if (!IsMacroName(name)) return NoIdentifier(flag, name);
  KERNIX_RETURN_IF_ERROR(CheckValue(flag, value));
  lines.push_back(StrCat("#define ", name, " ", value));
  return absl::OkStatus();
}

absl::Status AddUndefinition(std::string_view flag, std::string_view name, std::vector<std::string>& lines) {
  if (!IsIdentifier(name)) return NoIdentifier(flag, name);
  lines.push_back(StrCat("#undef ", name));
  return absl::OkStatus();
}

}  // namespace kernix::toolchain
