// SPDX-License-Identifier: Apache-2.0
//
// The ranks and memory estimates of a build's steps, from earlier builds of its name.
#pragma once

#include "daemon/builder/planned_load.h"
#include "daemon/cache/cache.h"

namespace kernix::build {

// Sets both in the steps of `load`, whose start must be set.
void RankSteps(cache::Cache& cache, PlannedLoad& load);

}  // namespace kernix::build
