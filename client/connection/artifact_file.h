// SPDX-License-Identifier: Apache-2.0
//
// Checks whether this process may run an artifact from this machine's file system.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"

namespace kernix {

// Returns the path, without links, of the artifact at `path`: a regular file of `size` bytes that belongs to root, this
// user or the machine's service, and that no other user can write to or replace. So the file at that path later is the
// file that was checked, and the loader can open it. Does not read the content.
//
// Each folder is checked once per process. Returns kNotFound if the file is missing or is a different one, and
// kPermissionDenied if it may not be run or cannot be read. Thread-safe.
absl::StatusOr<std::string> CheckArtifact(const ClientEnvironment& environment, const std::string& path, uint64_t size);

}  // namespace kernix
