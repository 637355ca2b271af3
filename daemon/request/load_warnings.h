// SPDX-License-Identifier: Apache-2.0
//
// What is doubtful about a request that can be built. The same for a build and a hit, because it is read from the
// sources.
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/request/request.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// The most warnings of one name. The last one says how many more there are.
inline constexpr size_t kMostOfAName = 20;

std::vector<v1::LoadWarning> LoadWarnings(const BuildRequest& request);

}  // namespace kernix::build
