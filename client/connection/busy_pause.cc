// SPDX-License-Identifier: Apache-2.0
#include "client/connection/busy_pause.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/jitter.h"

namespace kernix {

std::chrono::milliseconds BusyPause(const absl::Status& status, int repetition) {
  constexpr int kMostDoublings = 4;
  return Jittered(RetryAfter(status) * (1 << std::min(repetition - 1, kMostDoublings)));
}

}  // namespace kernix
