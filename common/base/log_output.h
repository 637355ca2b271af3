// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the lines of the log.
#pragma once

#include <cstddef>
#include <functional>

namespace kernix {

// Called with the bytes of each line that has been written, in the order of the lines.
using LogWatcher = std::function<void(size_t bytes)>;

// For whoever keeps the log small; null: nobody. Once this has returned, no call of the last watcher goes on. A watcher
// must not log.
void SetLogWatcher(LogWatcher watcher);

}  // namespace kernix
