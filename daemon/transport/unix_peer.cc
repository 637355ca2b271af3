// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/unix_peer.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "common/base/strings.h"
#include "common/os/posix_error.h"

namespace kernix::server {

absl::StatusOr<Peer> PeerOf(int socket) {
  struct ucred credentials {};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return ErrnoStatus(errno, "see who is at the other end of", StrCat("descriptor ", socket));
  }
  return Peer{.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.ok()) return ErrnoStatus(errno, "make a socket for", path);
  const SocketAddress address(path);
  if (connect(fd.get(), address.get(), address.size()) == 0) return fd;
  if (errno == ECONNREFUSED || errno == EAGAIN) {
    return absl::UnavailableError(StrCat("nobody answers at ", path));
  }
  return ErrnoStatus(errno, "connect to", path);
}

}  // namespace kernix::server
