// SPDX-License-Identifier: Apache-2.0
//
// Sizes and durations as users write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace kernix {

// "10GiB", "512 MiB", "1000000" -> bytes. For other texts, returns kInvalidArgument with an example.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);

// "250ms", "90s", "10m", "2h", "7d"; "0" needs no unit. For other texts, returns kInvalidArgument with an example.
absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);

}  // namespace kernix
