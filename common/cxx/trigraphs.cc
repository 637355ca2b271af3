// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/trigraphs.h"

namespace kernix::language {
namespace {

// The character that a trigraph at `at` stands for, or 0 if there is no trigraph.
char TrigraphAt(std::string_view text, size_t at) {
  constexpr std::string_view kThird = "=/'()!<>-";
  constexpr std::string_view kMeaning = "#\\^[]|{}~";
  const size_t found = at + 2 < text.size() ? kThird.find(text[at + 2]) : std::string_view::npos;
  return found == std::string_view::npos ? '\0' : kMeaning[found];
}

std::string ReplaceTrigraphs(std::string_view text) {
  std::string replaced;
  replaced.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char meaning = text.substr(at, 2) == "??" ? TrigraphAt(text, at) : '\0';
    replaced += meaning != '\0' ? meaning : text[at];
    at += meaning != '\0' ? 3 : 1;
  }
  return replaced;
}

}  // namespace

std::vector<std::string_view> Readings(std::string_view text, std::deque<std::string>& storage) {
  std::vector<std::string_view> readings = {text};
  if (text.find("?\?") != std::string_view::npos) readings.push_back(storage.emplace_back(ReplaceTrigraphs(text)));
  return readings;
}

}  // namespace kernix::language
