// SPDX-License-Identifier: Apache-2.0
//
// Work of short life on several processors.
#pragma once

#include <functional>
#include <vector>

namespace kernix::toolchain {

// Runs all `tasks`, a few at a time, and returns when the last one has ended. Throws what a task has thrown.
void RunSideBySide(const std::vector<std::function<void()>>& tasks);

}  // namespace kernix::toolchain
