// SPDX-License-Identifier: Apache-2.0
//
// Pauses of callers that should not come back together.
#pragma once

#include <chrono>

namespace kernix {

// A random time between half of `longest`, which must not be negative, and all of it.
std::chrono::milliseconds Jittered(std::chrono::milliseconds longest);

}  // namespace kernix
