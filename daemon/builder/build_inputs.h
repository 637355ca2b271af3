// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a build, one by one, in the form in which builds are compared for people.
#pragma once

#include <vector>

#include "daemon/cache/entry.h"
#include "daemon/request/request.h"

namespace kernix::build {

// The inputs that a key covers, sorted. They name nothing that the key does not cover: no path of this machine, no
// user. The inputs of a kind that there are very many of appear as one.
std::vector<cache::BuildInput> InputsOf(const BuildRequest& request);

}  // namespace kernix::build
