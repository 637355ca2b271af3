// SPDX-License-Identifier: Apache-2.0
//
// Connects to a daemon's socket and identifies the process at the other end.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/os/unique_fd.h"

namespace kernix {

// A connected socket and the process that listens at its other end.
struct PeerSocket {
  UniqueFd fd;
  std::string path;
  pid_t pid = 0;  // 0 if it runs outside of our process namespace
  uid_t uid = 0;
};

// Connects without waiting, and only to a process of a user whom `self` may trust to run code for it: `self`, root, or
// the user `kernix` of the machine's service.
//
// Returns kNotFound if no process listens there; kUnavailable if its queue is full (try again); and kPermissionDenied
// if this process may not connect, or if the listener belongs to another user, whom the message names.
absl::StatusOr<PeerSocket> ConnectUnix(const std::string& path, uid_t self);

// Two connected sockets. Started programs inherit neither.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> MakeSocketPair();

// Whether `owner` is a user whom `self` may trust.
bool IsTrustedUser(uid_t owner, uid_t self);

// Returns `fd`, or a copy above the numbers of standard input, output and error. In a process that has closed these, a
// new descriptor gets such a number, and a child that receives its own would lose ours.
UniqueFd AboveStandardStreams(UniqueFd fd);

}  // namespace kernix
