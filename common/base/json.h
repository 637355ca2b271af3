// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernix {

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

}  // namespace kernix
