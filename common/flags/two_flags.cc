// SPDX-License-Identifier: Apache-2.0
#include "common/flags/two_flags.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::flags {
namespace {

// A word, parted at a blank.
struct Parts {
  std::string_view first;
  std::string_view rest;  // empty: there is no such blank
};

// The parts of `word` at each blank outside quotes and parentheses.
std::vector<Parts> PartsOf(std::string_view word) {
  std::vector<Parts> all;
  char quote = '\0';
  int depth = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == ')') {
      depth += c == '(' ? 1 : -1;
    } else if (c == ' ' && depth <= 0 && i > 0 && word[i - 1] != ' ') {
      const size_t next = word.find_first_not_of(' ', i);
      if (next != word.npos) all.push_back({word.substr(0, i), word.substr(next)});
    }
  }
  if (quote != '\0') all.clear();  // an apostrophe
  return all;
}

bool LooksLikeFlag(std::string_view text) {
  const size_t dashes = text.starts_with("--") ? 2 : 1;
  return text.starts_with('-') && text.size() > dashes && absl::ascii_isalpha(static_cast<unsigned char>(text[dashes]));
}

// A macro's value may be an expression: "a -b". One that stands in a word of its own is meant as it is, unless another
// macro follows.
bool IsFlagBehindMacro(const Table& table, std::string_view text, bool has_own_word) {
  size_t next = 0;
  const Flag flag = Read(table, {std::string(text.substr(0, text.find(' ')))}, next);
  const bool is_macro = flag.meaning() == Meaning::kDefine || flag.meaning() == Meaning::kUndefine;
  return LooksLikeFlag(text) && (is_macro || (!has_own_word && (text.starts_with("--") || flag.rule != nullptr)));
}

bool HoldsFlagsOfAnotherTool(Meaning meaning) {
  return meaning == Meaning::kHostFlags || meaning == Meaning::kPtxasFlags || meaning == Meaning::kCudafeFlags;
}

// Whether `parts` are a flag and its value: "-Xptxas -v", "-I /x".
bool AreFlagAndValue(const Table& table, const Parts& parts) {
  size_t next = 0;
  const Flag flag = Read(table, {std::string(parts.first), std::string(parts.rest)}, next);
  return flag.rule != nullptr && next == 2;
}

absl::Status Refuse(std::string_view word, std::string_view what, const Parts& parts, std::string_view or_else) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("\"", word, "\" is ", what, " in one string: write two, \"",
                                                            parts.first, "\" and \"", parts.rest, "\"", or_else));
}

}  // namespace

absl::Status CheckIsOneFlag(const Table& table, const Flag& flag) {
  if (HoldsFlagsOfAnotherTool(flag.meaning())) return absl::OkStatus();
  const bool is_macro = flag.meaning() == Meaning::kDefine || flag.meaning() == Meaning::kUndefine;
  for (const std::string& word : flag.words) {
    for (const Parts& parts : PartsOf(word)) {
      const bool is_value = &word != &flag.text();
      if (!is_value && AreFlagAndValue(table, parts)) {
        return Refuse(word, "a flag and its value", parts, "");
      }
      if (is_macro ? IsFlagBehindMacro(table, parts.rest, is_value) : LooksLikeFlag(parts.rest)) {
        return Refuse(word, "two flags", parts, is_macro ? ". If it is one value, put it in parentheses" : "");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace kernix::flags
