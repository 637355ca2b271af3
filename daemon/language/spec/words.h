// SPDX-License-Identifier: Apache-2.0
//
// Small string helpers for std::string_view (distributions build Abseil's with a type of its own).
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace kernix::language {

// Removes `prefix` from the front of `text`, if it is there.
inline bool ConsumePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The same for `suffix` at the back.
inline bool ConsumeSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

inline bool HasText(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The words of `text`, separated by white space.
inline std::vector<std::string_view> Words(std::string_view text) {
  static constexpr std::string_view kSpace = " \t\r\n\v\f";
  std::vector<std::string_view> words;
  for (size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpace, end);
  }
  return words;
}

}  // namespace kernix::language
