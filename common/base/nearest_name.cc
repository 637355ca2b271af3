// SPDX-License-Identifier: Apache-2.0
#include "common/base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr size_t kLongestName = 64;

// Levenshtein's distance, where two neighbours that are exchanged are one change: three rows of the table.
size_t Changes(std::string_view from, std::string_view to) {
  std::vector<size_t> before;
  std::vector<size_t> last;
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(std::string_view name, const std::vector<std::string>& names) {
  if (name.size() > kLongestName) return "";
  std::string nearest;
  size_t fewest = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : names) {
    if (candidate.size() > kLongestName) continue;
    const size_t changes = Changes(name, candidate);
    if (changes >= fewest) continue;
    fewest = changes;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : StrCat(" Did you mean ", nearest, "?");
}

}  // namespace kernix
