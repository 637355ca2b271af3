// SPDX-License-Identifier: Apache-2.0
//
// Connecting to a daemon's socket, and knowing who is at the other end.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/os/unique_fd.h"

namespace kernix {

// A connected socket and the process that listens at its other end.
struct PeerSocket {
  UniqueFd fd;
  pid_t pid = 0;  // 0 when it lives outside our process namespace
  uid_t uid = 0;
};

// Connects without waiting, and only to somebody whom `self` may trust with running code for it: itself, root, or the
// user `kernix` of the machine's service.
//
// kNotFound: nobody listens there. kUnavailable: somebody does, but has no room in its queue just now; try again.
// kPermissionDenied: we may not connect, or the listener is somebody else, who is then named.
absl::StatusOr<PeerSocket> ConnectUnix(const std::string& path, uid_t self);

// The error for a socket or folder of somebody else: kind UNREACHABLE, code kPermissionDenied.
absl::Status RefusedError(std::string_view message);

// Two connected sockets, neither inherited by a program that is started.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> MakeSocketPair();

// Whether `owner` is one of those whom `self` may trust.
bool IsTrustedUser(uid_t owner, uid_t self);

// `fd`, or in its place one above those of standard input, output and error: in a process that has closed these, a new
// descriptor gets their number, and a child that is given its own would lose ours.
UniqueFd AboveStandardStreams(UniqueFd fd);

}  // namespace kernix
