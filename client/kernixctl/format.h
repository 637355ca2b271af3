// SPDX-License-Identifier: Apache-2.0
//
// Numbers and times as people read them, and JSON as programs do.
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

// "3 min", in the largest unit of which there are at least two.
std::string FormatDuration(std::chrono::milliseconds duration);

// "90s", "10m", "2h", "7d". INVALID_ARGUMENT with an example.
absl::StatusOr<std::chrono::milliseconds> ParseAge(std::string_view text);

// `text` as a JSON string, with its quotes. What acts on a terminal is escaped as \uXXXX.
std::string JsonString(std::string_view text);

// The elements, each JSON already: "[a, b]".
std::string JsonArray(const std::vector<std::string>& elements);

// One JSON object on one line.
class JsonObject {
 public:
  JsonObject& Text(std::string_view name, std::string_view value);
  JsonObject& Number(std::string_view name, int64_t value);
  JsonObject& Number(std::string_view name, uint64_t value);
  JsonObject& Boolean(std::string_view name, bool value);
  // `value` is JSON already.
  JsonObject& Json(std::string_view name, std::string_view value);

  std::string Str() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

// Columns as wide as their widest cell, two spaces between them. What acts on a terminal is escaped in the cells: they
// may be names that others have given.
std::string FormatTable(std::vector<std::vector<std::string>> rows);

}  // namespace kernix::ctl
