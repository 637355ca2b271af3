// SPDX-License-Identifier: Apache-2.0
//
// Errors of loads that are neither the compiler's nor the request's.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "daemon/builder/miss_reason.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// A file no longer matches the load's key. `what` names it. The client loads again.
absl::Status Outdated(const std::string& what);

// The load may not build. `frozen`: its program expects no build any more, which the error then says.
absl::Status NotCached(const std::string& name, const Miss& miss, bool frozen);

// The load's compilers are on another node. `upstream`: null if there is none.
absl::Status NotTaken(const std::string& name, const toolchain::Toolchain& toolchain, const UpstreamCache* upstream);

// NOT_CACHED for those who then do something else.
absl::Status NothingThere();

// The load forces a build, and the toolchain is only described.
absl::Status NothingToBuildWith(const toolchain::Toolchain& toolchain);

}  // namespace kernix::build
