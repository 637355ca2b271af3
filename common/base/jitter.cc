// SPDX-License-Identifier: Apache-2.0
#include "common/base/jitter.h"

#include <cstdint>
#include <random>

namespace kernix {

std::chrono::milliseconds Jittered(std::chrono::milliseconds longest) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::chrono::milliseconds(
      std::uniform_int_distribution<int64_t>(longest.count() / 2, longest.count())(random));
}

}  // namespace kernix
