// SPDX-License-Identifier: Apache-2.0
//
// Where the kernixd is that a client starts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"

namespace kernix {

// `named` (ClientOptions::kernixd), else $KERNIXD, else beside the file that holds this code (in its folder, in bin/
// below it, or in ../bin), else on PATH. An absolute path of a program that may be run. UNREACHABLE, listing where it
// looked.
absl::StatusOr<std::string> FindKernixd(const ClientEnvironment& environment, const std::string& named);

}  // namespace kernix
