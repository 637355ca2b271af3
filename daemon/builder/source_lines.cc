// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/source_lines.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/paths.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

// Longer lines help nobody, and a text may be a single line.
constexpr size_t kMaxLineBytes = 500;
// Limit for the text added to one output.
constexpr size_t kMaxAddedBytes = 1 << 20;
constexpr size_t kTabStop = 8;

struct Place {
  std::string name;
  size_t line = 0;
  size_t column = 0;  // from 1; 0: no column is named
};

// Removes ":<number>" from the end.
std::optional<size_t> TakeNumber(std::string_view& text) {
  const size_t colon = text.rfind(':');
  size_t number = 0;
  if (colon == std::string_view::npos || !absl::SimpleAtoi(ToAbsl(text.substr(colon + 1)), &number)) {
    return std::nullopt;
  }
  text = text.substr(0, colon);
  return number;
}

// Parses the text before ": error: ".
std::optional<Place> ReadPlace(std::string_view text) {
  const std::optional<size_t> last = TakeNumber(text);
  if (!last) return std::nullopt;
  const std::optional<size_t> before = TakeNumber(text);
  if (text.empty()) return std::nullopt;
  const std::string name = NormalizePath(std::string(text));
  return before ? Place{name, *before, *last} : Place{name, *last, 0};
}

// The place that a line of output is about.
std::optional<Place> PlaceOf(std::string_view line) {
  constexpr std::string_view kKinds[] = {
      ": error: ", ": fatal error: ", ": warning: ", ": note: ", ": Error: ", ": Warning: ", ": Info: "};
  size_t first = std::string_view::npos;
  for (const std::string_view kind : kKinds) first = std::min(first, line.find(kind));
  return first == std::string_view::npos ? std::nullopt : ReadPlace(line.substr(0, first));
}

// A line as it is shown, and the width of the text before `column`. GCC counts columns as displayed, Clang in bytes:
// these differ for tabs and for non-ASCII letters, where the mark may be slightly off.
struct ShownLine {
  std::string text;
  size_t width_before = 0;
};

ShownLine Show(std::string_view line, size_t column) {
  ShownLine shown;
  size_t width = 0;
  for (const char c : line) {
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;  // a byte within a multi-byte letter
    const size_t next = c == '\t' ? (width / kTabStop + 1) * kTabStop : width + (continues ? 0 : 1);
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (c == '\t' || control) {
      shown.text.append(next - width, ' ');
    } else {
      shown.text += c;
    }
    width = next;
  }
  shown.width_before = std::min(column - 1, width);
  return shown;
}

std::string Quote(const Place& place, std::string_view line) {
  const ShownLine shown = Show(line, std::max<size_t>(place.column, 1));
  std::string quote = absl::StrCat(absl::Dec(place.line, absl::kSpacePad5), " | ", shown.text, "\n");
  if (place.column > 0) StrAppend(&quote, "      | ", std::string(shown.width_before, ' '), "^\n");
  return quote;
}

}  // namespace

void QuotableTexts::Add(const std::string& name, std::string_view text) {
  const auto [place, is_new] = texts_.emplace(NormalizePath(name), text);
  if (!is_new) place->second = {};
}

bool QuotableTexts::Line(const std::string& name, size_t line, std::string_view& found) const {
  const auto text = texts_.find(name);
  if (text == texts_.end() || line == 0) return false;
  std::string_view rest = text->second;
  for (size_t skipped = 1; skipped < line; ++skipped) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return false;
    rest.remove_prefix(end + 1);
  }
  found = rest.substr(0, rest.find('\n'));
  if (found.ends_with('\r')) found.remove_suffix(1);
  return !found.empty() && found.size() <= kMaxLineBytes;
}

std::string WithSourceLines(std::string_view output, const QuotableTexts& texts) {
  std::string shown;
  size_t added = 0;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, std::min(output.find('\n'), output.size() - 1) + 1);
    output.remove_prefix(line.size());
    shown += line;
    const std::optional<Place> place = PlaceOf(line);
    std::string_view quoted;
    if (!place || added > kMaxAddedBytes || !texts.Line(place->name, place->line, quoted)) continue;
    if (!line.ends_with('\n')) shown += '\n';
    const std::string quote = Quote(*place, quoted);
    added += quote.size();
    shown += quote;
  }
  return shown;
}

}  // namespace kernix::build
