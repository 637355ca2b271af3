// SPDX-License-Identifier: Apache-2.0
#include "common/base/units.h"

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

struct Unit {
  std::string_view name;  // lower case
  uint64_t factor;
};

constexpr uint64_t kSecond = 1000;
constexpr uint64_t kHour = 3600 * kSecond;

constexpr std::array kSizeUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", 1ull << 10},
    Unit{"kib", 1ull << 10},
    Unit{"kb", 1'000},
    Unit{"m", 1ull << 20},
    Unit{"mib", 1ull << 20},
    Unit{"mb", 1'000'000},
    Unit{"g", 1ull << 30},
    Unit{"gib", 1ull << 30},
    Unit{"gb", 1'000'000'000},
    Unit{"t", 1ull << 40},
    Unit{"tib", 1ull << 40},
    Unit{"tb", 1'000'000'000'000},
};

constexpr std::array kTimeUnits = {
    Unit{"ms", 1}, Unit{"s", kSecond}, Unit{"m", 60 * kSecond}, Unit{"h", kHour}, Unit{"d", 24 * kHour},
};

struct NumberAndUnit {
  uint64_t number = 0;
  std::string unit;
};

// "10 GiB" -> 10 and "gib". Returns nullopt if `text` does not start with a whole number.
std::optional<NumberAndUnit> Split(std::string_view text) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(ToAbsl(text));
  size_t digits = 0;
  while (digits < trimmed.size() && absl::ascii_isdigit(trimmed[digits])) ++digits;
  NumberAndUnit parts;
  if (!absl::SimpleAtoi(trimmed.substr(0, digits), &parts.number)) return std::nullopt;
  parts.unit = absl::AsciiStrToLower(absl::StripLeadingAsciiWhitespace(trimmed.substr(digits)));
  return parts;
}

template <size_t N>
std::optional<uint64_t> Scale(const NumberAndUnit& parts, const std::array<Unit, N>& units, uint64_t limit) {
  for (const Unit& unit : units) {
    if (parts.unit != unit.name) continue;
    if (parts.number > limit / unit.factor) return std::nullopt;
    return parts.number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  if (const std::optional<NumberAndUnit> parts = Split(text)) {
    if (const auto bytes = Scale(*parts, kSizeUnits, std::numeric_limits<uint64_t>::max())) return *bytes;
  }
  return absl::InvalidArgumentError(
      StrCat("\"", text, "\" is not a size: write a whole number and a unit, such as 10GiB, 512MiB or 1000000"));
}

absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  if (const std::optional<NumberAndUnit> parts = Split(text)) {
    if (parts->number == 0 && parts->unit.empty()) return std::chrono::milliseconds{0};
    if (const auto millis = Scale(*parts, kTimeUnits, std::numeric_limits<int64_t>::max() / 1'000'000)) {
      return std::chrono::milliseconds{*millis};
    }
  }
  return absl::InvalidArgumentError(
      StrCat("\"", text, "\" is not a time: write a whole number and a unit, such as 250ms, 90s, 10m, 2h or 7d"));
}

}  // namespace kernix
