// SPDX-License-Identifier: Apache-2.0
//
// Numbers, times and tables for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
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

// Each column is as wide as its widest cell; two spaces separate the columns. Characters that act on a terminal are
// escaped in the cells, because cells may contain names that other users chose.
std::string FormatTable(std::vector<std::vector<std::string>> rows);

}  // namespace kernix::ctl
