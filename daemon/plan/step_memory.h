// SPDX-License-Identifier: Apache-2.0
//
// How much memory a step is expected to need.
#pragma once

#include "daemon/plan/plan.h"

namespace kernix::build {

// Sets the memory estimate of the step's action by experience, if `step.memory_before` has its name. Call it again for
// a step that is renamed, or that becomes several.
void UseExperience(Step& step);

}  // namespace kernix::build
