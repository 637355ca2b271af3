// SPDX-License-Identifier: Apache-2.0
//
// Whether somebody else can exchange what lies at a path. Code is run from there, so it matters who can.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix {

// `path` without links, when nobody but root and `owners` can put something else in the place of any folder or link on
// the way, or of what lies at its end: each folder belongs to one of them, and nobody else can write there. Excepted
// are
//   - sticky folders (/tmp), where what the way goes on with has to belong to root or `owners`;
//   - folders that a group may write to which is its owner's alone, as where umask is 002;
//   - folders of whoever owns "/", who can exchange every library and program as well. Outside of containers that is
//     root. In a user namespace without the host's root (Apptainer, rootless containers) it may be the user who stands
//     for all whom the namespace does not have.
//
// kPermissionDenied names the folder, whose it is and what to do; kNotFound when there is nothing at `path`. What lies
// at its end may have any mode, unless it is a folder.
absl::StatusOr<std::string> GuardedRealPath(Env& env, const std::string& path, const std::vector<uid_t>& owners);

}  // namespace kernix
