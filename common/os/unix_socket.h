// SPDX-License-Identifier: Apache-2.0
//
// Unix sockets: their addresses, connections to them, and who is at the other end.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"

namespace kernix {

static_assert(kMaxSocketPath == sizeof(sockaddr_un::sun_path) - 1);

// kInvalidArgument if `path` is too long for a socket.
absl::Status CheckSocketPath(std::string_view path);

// A path in the form that the socket calls need.
class SocketAddress {
 public:
  // `path` must have passed CheckSocketPath().
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
  pid_t pid = 0;  // 0 if it runs outside of our process namespace
  uid_t uid = 0;
  gid_t gid = 0;
};

// The process that connected (for a client's end: the process that listens), as the kernel recorded it at that moment.
absl::StatusOr<Peer> PeerOf(int socket);

// Connects to the stream socket at `path`. Does not wait. kNotFound if nobody listens there, kUnavailable if its queue
// is full (try again), kPermissionDenied if this process may not connect, kInvalidArgument if the path is too long.
absl::StatusOr<UniqueFd> ConnectTo(const std::string& path);

// Two connected sockets of this type. Started programs inherit neither.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> ConnectedPair(int type);

// Makes room for a socket at `path`: removes one at which nobody listens any more. kAlreadyExists if somebody does,
// kFailedPrecondition if there is something else. Messages name the option --socket.
absl::Status RemoveStaleSocket(Env& env, const std::string& path);

}  // namespace kernix
