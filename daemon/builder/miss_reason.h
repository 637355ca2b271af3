// SPDX-License-Identifier: Apache-2.0
//
// Says to people why a load was a miss.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "daemon/builder/planned_load.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/entry.h"
#include "daemon/toolchain/file_digests.h"

namespace kernix::build {

struct Miss {
  std::string reason;                  // "header x.h changed", "other flags: -O2, was -O3". One line of valid UTF-8.
  std::optional<Digest> nearest = {};  // the key of the entry that the load was compared with, if there is one
};

// How a load with these inputs differs from the most similar one of `earlier` that has the same language. Among equally
// similar ones, the first.
Miss CompareWithEarlier(const std::vector<cache::BuildInput>& inputs, const std::vector<cache::BuiltFrom>& earlier);

// Why there is no hit for `load`. Compares only with its user's loads of its name.
Miss ExplainMiss(cache::Cache& cache, toolchain::FileDigests& digests, const PlannedLoad& load);

}  // namespace kernix::build
