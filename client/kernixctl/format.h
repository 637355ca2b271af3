// SPDX-License-Identifier: Apache-2.0
//
// Numbers, times and tables for people, and lists for programs.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/json.h"

namespace kernix::ctl {

// "1.5 MiB".
std::string FormatBytes(uint64_t bytes);

// "3 min": uses the largest unit of which the duration has at least two.
std::string FormatDuration(std::chrono::milliseconds duration);

// "2026-01-05 09:12:44 UTC".
std::string FormatTime(int64_t unix_ms);

// "90s", "10m", "2h", "7d". For other texts, returns INVALID_ARGUMENT with an example.
absl::StatusOr<std::chrono::milliseconds> ParseAge(std::string_view text);

// Each column is as wide as its widest cell; two spaces separate the columns. Characters that act on a terminal are
// escaped in the cells, because cells may contain names that other users chose.
std::string FormatTable(std::vector<std::vector<std::string>> rows);

// A JSON array of the results of `json_of` for each element.
template <typename Elements, typename JsonOf>
std::string JsonOfAll(const Elements& elements, const JsonOf& json_of) {
  std::vector<std::string> texts;
  for (const auto& element : elements) texts.push_back(json_of(element));
  return JsonArray(texts);
}

// A JSON object of the numbers, flags and texts of a message, by their names there. Lists, enums, bytes and parts that
// are messages are left out.
JsonObject FieldsOf(const google::protobuf::Message& message);

// A JSON array of the strings of a message.
inline std::string JsonOfTexts(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return JsonStrings({texts.begin(), texts.end()});
}

}  // namespace kernix::ctl
