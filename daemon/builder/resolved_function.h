// SPDX-License-Identifier: Apache-2.0
//
// A function of a cache entry as clients see it.
#pragma once

#include "daemon/cache/entry.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// The role of a token that this kernixd does not know is unspecified.
v1::ResolvedFunction ResolvedFunctionOf(const cache::Function& function);

}  // namespace kernix::build
