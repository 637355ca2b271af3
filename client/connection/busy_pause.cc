// SPDX-License-Identifier: Apache-2.0
#include "client/connection/busy_pause.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include "common/base/error.h"

namespace kernix {

std::chrono::milliseconds BusyPause(const absl::Status& status, int repetition) {
  constexpr int kMostDoublings = 4;
  const int64_t longest = RetryAfter(status).count() << std::min(repetition - 1, kMostDoublings);
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(longest / 2, longest)(random));
}

}  // namespace kernix
