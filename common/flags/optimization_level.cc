// SPDX-License-Identifier: Apache-2.0
#include "common/flags/optimization_level.h"

#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::flags {

absl::Status CheckOptimizationLevel(int64_t level) {
  if (level >= 0 && level <= kMaxOptimizationLevel) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("optimization_level ", level, " is not one of 0, 1, 2, 3"));
}

}  // namespace kernix::flags
