// SPDX-License-Identifier: Apache-2.0
//
// Numbers and times for people, and JSON for programs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix::ctl {

// "1.5 MiB".
std::string FormatBytes(uint64_t bytes);

// "3 min": uses the largest unit of which the duration has at least two.
std::string FormatDuration(std::chrono::milliseconds duration);

// "2026-01-05 09:12:44 UTC".
std::string FormatTime(int64_t unix_ms);

// "90s", "10m", "2h", "7d". For other texts, returns INVALID_ARGUMENT with an example.
absl::StatusOr<std::chrono::milliseconds> ParseAge(std::string_view text);

// `text` as a JSON string, with quotes. Characters that act on a terminal are escaped as \uXXXX.
std::string JsonString(std::string_view text);

// Joins elements that are already JSON: "[a, b]".
std::string JsonArray(const std::vector<std::string>& elements);

// An array of strings.
std::string JsonStrings(const std::vector<std::string>& texts);

// One JSON object on one line.
class JsonObject {
 public:
  JsonObject& Text(std::string_view name, std::string_view value);
  JsonObject& Number(std::string_view name, int64_t value);
  JsonObject& Number(std::string_view name, uint64_t value);
  JsonObject& Boolean(std::string_view name, bool value);
  // `value` is already JSON.
  JsonObject& Json(std::string_view name, std::string_view value);

  std::string Str() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

// Each column is as wide as its widest cell; two spaces separate the columns. Characters that act on a terminal are
// escaped in the cells, because cells may contain names that other users chose.
std::string FormatTable(std::vector<std::vector<std::string>> rows);

}  // namespace kernix::ctl
