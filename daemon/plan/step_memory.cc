// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/step_memory.h"

#include <algorithm>

namespace kernix::build {

void UseExperience(Step& step) {
  if (step.memory_before == nullptr) return;
  const auto before = step.memory_before->find(step.action.step);
  if (before == step.memory_before->end()) return;
  // The source has been edited since. Of a command with several processes, only the largest one is known.
  const uint64_t largest = before->second + before->second / 4;
  step.action.memory_estimate_bytes = largest * static_cast<uint64_t>(std::max(step.action.jobs, 1));
}

}  // namespace kernix::build
