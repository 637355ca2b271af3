// SPDX-License-Identifier: Apache-2.0
//
// What a load may ask for, as client and daemon both check it. All return INVALID_REQUEST for anything else.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// Whether `name` can name a module. Lists and logs show the name, and files are named after it.
absl::Status CheckModuleName(std::string_view name);

// The highest optimization_level of a request, for host and device code alike. The lowest is 0.
inline constexpr int kMaxOptimizationLevel = 3;

absl::Status CheckOptimizationLevel(int64_t level);

}  // namespace kernix
