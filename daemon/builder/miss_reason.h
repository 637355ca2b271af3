// SPDX-License-Identifier: Apache-2.0
//
// What a build was made from, for people: its settings, and its inputs, one by one. Comparing these with earlier builds
// says why a load was a miss.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "daemon/builder/flight.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/entry.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/file_digests.h"

namespace kernix::build {

// The definitions, flags and settings of a build, as a compiler or kernixctl takes them. Shortens long texts and long
// lists, and says so.
std::vector<std::string> DescribeBuild(const BuildRequest& request);

// The inputs that a key covers, sorted. They name nothing that the key does not cover: no path of this machine, no
// user. The inputs of a kind that there are very many of appear as one.
std::vector<cache::BuildInput> InputsOf(const BuildRequest& request);

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
