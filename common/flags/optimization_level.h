// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace kernix::flags {

// The highest optimization_level of a request, for host and device code alike. The lowest is 0.
inline constexpr int kMaxOptimizationLevel = 3;

// Returns INVALID_REQUEST for a level outside of this range.
absl::Status CheckOptimizationLevel(int64_t level);

}  // namespace kernix::flags
