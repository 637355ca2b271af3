// SPDX-License-Identifier: Apache-2.0
//
// Who is at the other end of a Unix socket.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "common/os/socket_address.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// The process that connected (for a client's end: the process that listens), as the kernel recorded it at that moment.
absl::StatusOr<Peer> PeerOf(int socket);

// Connects to the socket at `path`. kUnavailable if nobody listens there (or its queue is full), kNotFound if there is
// no such file. Does not wait.
absl::StatusOr<UniqueFd> ConnectTo(const std::string& path);

}  // namespace kernix::server
