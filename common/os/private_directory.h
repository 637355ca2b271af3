// SPDX-License-Identifier: Apache-2.0
//
// Folders that belong to one user.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "common/os/env.h"

namespace kernix {

// `path` with every link resolved, also where its last parts do not exist yet: the same text before and after they are
// made.
std::string CanonicalPath(Env& env, const std::string& path);

// Makes `path` with mode 0700 when absent, with its parents. kPermissionDenied, naming the owner, when it is somebody
// else's, a link, no folder, or open to others.
absl::Status EnsurePrivateDirectory(Env& env, const std::string& path, uid_t uid);

// For a folder that may be a link, and that others may read: kPermissionDenied, naming the owner and what to do, when
// it belongs to neither `uid` nor root, or when others may write to it.
absl::Status CheckGuardedDirectory(Env& env, const std::string& path, uid_t uid);

// EnsurePrivateDirectory(), and nobody else can put another in its place: see GuardedRealPath().
absl::Status EnsureOwnDirectory(Env& env, const std::string& path, uid_t uid);

// "mallory (uid 1002)", or "uid 1002" where the user database has no such user.
std::string DescribeUser(uid_t uid);

}  // namespace kernix
