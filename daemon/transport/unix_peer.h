// SPDX-License-Identifier: Apache-2.0
//
// A Unix socket's address, and who is at its other end.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

// A path in the form that the socket calls need.
static_assert(kMaxSocketPath == sizeof(sockaddr_un::sun_path) - 1);

class SocketAddress {
 public:
  // `path` must be no longer than kMaxSocketPath.
  explicit SocketAddress(std::string_view path) {
    address_.sun_family = AF_UNIX;
    std::copy_n(path.begin(), std::min(path.size(), kMaxSocketPath), address_.sun_path);
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return sizeof address_; }

 private:
  sockaddr_un address_{};
};

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
