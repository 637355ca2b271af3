// SPDX-License-Identifier: Apache-2.0
//
// When the steps of a build shall run, and what they need, from what builds of its name have needed before.
#pragma once

#include "daemon/builder/planned_load.h"
#include "daemon/cache/cache.h"

namespace kernix::build {

// Sets that in the steps of `load`, whose start must be set.
void RankSteps(cache::Cache& cache, PlannedLoad& load);

}  // namespace kernix::build
