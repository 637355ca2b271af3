// SPDX-License-Identifier: Apache-2.0
//
// Finds the kernixd that a client starts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"

namespace kernix {

// Returns `named` (ClientOptions::kernixd), otherwise $KERNIXD, otherwise a kernixd near the file that contains this
// code (in its folder, in bin/ below it, or in ../bin), otherwise one on PATH. The result is the absolute path of an
// executable. UNREACHABLE lists the searched places.
absl::StatusOr<std::string> FindKernixd(const ClientEnvironment& environment, const std::string& named);

}  // namespace kernix
