// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace kernix::flags {

// What a request's optimization_level may be: 0 to this, for host and device code alike.
inline constexpr int kMaxOptimizationLevel = 3;

// INVALID_REQUEST for others.
absl::Status CheckOptimizationLevel(int64_t level);

}  // namespace kernix::flags
