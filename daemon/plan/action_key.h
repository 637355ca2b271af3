// SPDX-License-Identifier: Apache-2.0
//
// The key under which the artifact of a request is kept.
#pragma once

#include "common/base/digest.h"
#include "daemon/request/request.h"

namespace kernix::build {

// SHA-256 over a canonical serialisation of `request`, the toolchain's identity, kernix's kernel headers, and how
// kernix makes an artifact of them. No path of the machine (but see toolkit_path_in_artifact), no user, no time, no
// module name.
Digest ActionKey(const BuildRequest& request);

}  // namespace kernix::build
