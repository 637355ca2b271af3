// SPDX-License-Identifier: Apache-2.0
//
// Whether an artifact that lies on this machine may be run.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"

namespace kernix {

// The path without links of the artifact that is said to lie at `path`: a regular file of `size` bytes, of root, this
// user or the machine's service, that nobody else can write to or put another in the place of. So what is at that path
// later is what was looked at, and can be given to the loader. The content is not read.
//
// The folder is looked at once in a process. kNotFound when the file is not there or is another one, kPermissionDenied
// when it may not be run, or not be read. Thread-safe.
absl::StatusOr<std::string> CheckArtifact(const ClientEnvironment& environment, const std::string& path, uint64_t size);

}  // namespace kernix
