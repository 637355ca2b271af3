// SPDX-License-Identifier: Apache-2.0
//
// Checks whether another user can replace the file or folder at a path. kernix runs code from such paths.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix {

// Returns `path` without links, if only root and `owners` can replace the folders and links along the path and the file
// or folder at its end: each folder belongs to one of them, and no other user can write to it. There are three
// exceptions:
//   - sticky folders (/tmp): the next component of the path must belong to root or `owners`;
//   - folders that are writable by a group which is their owner's alone, as with umask 002;
//   - folders of the owner of "/", who can replace every library and program anyway. Outside of containers, that is
//   root.
//     In a user namespace without the host's root (Apptainer, rootless containers), it may be the user who represents
//     all users that the namespace does not map.
//
// kPermissionDenied names the folder, its owner and the remedy; kNotFound means that `path` does not exist. A file at
// the end of the path may have any mode; a folder must not be writable by others.
absl::StatusOr<std::string> GuardedRealPath(Env& env, const std::string& path, const std::vector<uid_t>& owners);

}  // namespace kernix
