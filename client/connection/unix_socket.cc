// SPDX-License-Identifier: Apache-2.0
#include "client/connection/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/private_directory.h"
#include "common/os/socket_address.h"
#include "common/os/user_entry.h"

namespace kernix {
namespace {

constexpr char kServiceUser[] = "kernix";

// The error for a socket of another user: kind UNREACHABLE, code kPermissionDenied.
absl::Status RefusedError(std::string_view message) {
  return MakeError(v1::ErrorDetail::UNREACHABLE, message, absl::StatusCode::kPermissionDenied);
}

absl::Status ConnectError(int error, const std::string& path) {
  const std::string message = StrCat("connect to ", path, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
    case ENOTSOCK:
      return absl::NotFoundError(message);
    case EAGAIN:
    case EINTR:
      return absl::UnavailableError(message);
    case EACCES:
    case EPERM:
      return RefusedError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<PeerSocket> Identify(UniqueFd fd, const std::string& path) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return ConnectError(errno, path);
  return PeerSocket{.fd = std::move(fd), .path = path, .pid = peer.pid, .uid = peer.uid};
}

}  // namespace

bool IsTrustedUser(uid_t owner, uid_t self) {
  return owner == self || owner == 0 || LookUpUser(owner).name == kServiceUser;
}

UniqueFd AboveStandardStreams(UniqueFd fd) {
  // Descriptor 3 is also excluded, because it is a child's inherited socket.
  constexpr int kLowest = 4;
  if (!fd.ok() || fd.get() >= kLowest) return fd;
  return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, kLowest));
}

absl::StatusOr<PeerSocket> ConnectUnix(const std::string& path, uid_t self) {
  KERNIX_RETURN_IF_ERROR(CheckSocketPath(path));
  UniqueFd fd = AboveStandardStreams(UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!fd.ok()) return ConnectError(errno, path);
  const SocketAddress address(path);
  if (connect(fd.get(), address.get(), address.size()) != 0) {
    return ConnectError(errno, path);
  }
  KERNIX_ASSIGN_OR_RETURN(PeerSocket peer, Identify(std::move(fd), path));
  if (IsTrustedUser(peer.uid, self)) return peer;
  return RefusedError(StrCat("will not use ", path, ": it is served by ", DescribeUser(peer.uid),
                             ", whose kernels would run as ", DescribeUser(self),
                             ". Choose another address, or remove that socket."));
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> MakeSocketPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
    return absl::InternalError(StrCat("make a socket pair: ", strerror(errno)));
  }
  UniqueFd first = AboveStandardStreams(UniqueFd(fds[0]));
  UniqueFd second = AboveStandardStreams(UniqueFd(fds[1]));
  if (first.ok() && second.ok()) return std::make_pair(std::move(first), std::move(second));
  return absl::InternalError(StrCat("make a socket pair: ", strerror(errno)));
}

}  // namespace kernix
