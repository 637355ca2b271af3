// SPDX-License-Identifier: Apache-2.0
//
// What a load costs kernixd in memory. A request of some kilobytes can ask for a plan of many megabytes.
#pragma once

#include <cstdint>
#include <string>

#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// About the most bytes that kernixd has in memory for this load at once, from its arrival until its steps run. Known
// before anything is planned. It does not include the contents of uploaded headers and the outputs of steps.
uint64_t LoadCost(const v1::LoadRequest& request);

// Which part of the request costs most: "1000 sources, each compiled with 1000 flags".
std::string CostliestPart(const v1::LoadRequest& request);

}  // namespace kernix::server
