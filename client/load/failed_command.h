// SPDX-License-Identifier: Apache-2.0
//
// A command of a build that failed, as a folder in which a user can run it again.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Adds the links to the user's include roots. `headers` are those of the load, `roots` the folders of its include
// roots.
void AddIncludeRoots(const std::vector<v1::Header>& headers, const std::vector<std::string>& roots,
                     v1::FailedCommand& command);

// SaveFailedCommand() for the detail of an error.
absl::StatusOr<std::string> SaveFailedCommand(const v1::FailedCommand& command, const std::string& folder);

// Saves the command to a new folder, and returns that. The folder lies below the user's runtime directory, where no
// other user can get at it, and outlives the process. It goes when kKeptFailures later ones have been made.
absl::StatusOr<std::string> KeepFailedCommand(const v1::FailedCommand& command);
inline constexpr size_t kKeptFailures = 8;

// A line for a shell that runs the command in `folder`, where it has been saved.
std::string LineOfFailedCommand(const v1::FailedCommand& command, const std::string& folder);

}  // namespace kernix
