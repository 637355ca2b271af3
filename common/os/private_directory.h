// SPDX-License-Identifier: Apache-2.0
//
// Folders that belong to one user.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix {

// Checks whether another user can replace the file or folder at a path. kernix runs code from such paths.

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

// `path` with every link resolved. The last components of the path need not exist; the result is the same before and
// after they are created.
std::string CanonicalPath(Env& env, const std::string& path);

// Creates `path`, with its parents, with mode 0700 if it does not exist. Returns kPermissionDenied, with the owner's
// name, if it belongs to another user, is a link, or is open to others; kAlreadyExists if it is a file. If its mode
// shuts out this process's user, to whom it belongs, it gets mode 0700.
absl::Status EnsurePrivateDirectory(Env& env, const std::string& path, uid_t uid);

// The same for a folder that need not exist and is not created; it, too, is opened to its owner.
absl::Status CheckPrivateDirectory(Env& env, const std::string& path, uid_t uid);

// For a folder that may be a link and that others may read. Returns kPermissionDenied, with the owner and the remedy,
// if it belongs to neither `uid` nor root, or if others may write to it.
absl::Status CheckGuardedDirectory(Env& env, const std::string& path, uid_t uid);

// Like EnsurePrivateDirectory(); also checks that no other user can replace the folder (see GuardedRealPath()).
absl::Status EnsureOwnDirectory(Env& env, const std::string& path, uid_t uid);

// A message of these functions with a full stop, if it has none.
std::string Sentence(const absl::Status& status);

// "mallory (uid 1002)", or "uid 1002" if the user database has no such user.
std::string DescribeUser(uid_t uid);

// A user's entry in the user database; empty texts if it has no such user.
struct UserEntry {
  std::string name;
  std::string home;
};

UserEntry LookUpUser(uid_t uid);

}  // namespace kernix
