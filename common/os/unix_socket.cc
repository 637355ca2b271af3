// SPDX-License-Identifier: Apache-2.0
#include "common/os/unix_socket.h"

#include <sys/stat.h>

#include <cerrno>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"

namespace kernix {

absl::Status CheckSocketPath(std::string_view path) {
  if (path.size() <= kMaxSocketPath) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("the socket's path is ", path.size(),
                                           " bytes long, but the system allows at most ", kMaxSocketPath,
                                           ": choose a shorter one: ", path));
}

absl::StatusOr<Peer> PeerOf(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) return Peer{peer.pid, peer.uid, peer.gid};
  return ErrnoStatus(errno, "see who is at the other end of", StrCat("descriptor ", socket));
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& path) {
  KERNIX_RETURN_IF_ERROR(CheckSocketPath(path));
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress address(path);
  if (fd.ok() && connect(fd.get(), address.get(), address.size()) == 0) return fd;
  const int error = errno;
  const absl::Status status = ErrnoStatus(error, "connect to", path);
  if (error == ECONNREFUSED || error == ENOTSOCK) return absl::NotFoundError(status.message());
  if (error == EAGAIN || error == EINTR) return absl::UnavailableError(status.message());
  return status;
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> ConnectedPair(int type) {
  int ends[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoStatus(errno, "make", "a pair of sockets");
  return std::make_pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

absl::Status RemoveStaleSocket(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path, /*follow=*/false);
  if (absl::IsNotFound(info.status())) return absl::OkStatus();
  KERNIX_RETURN_IF_ERROR(info.status());
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) {
    return absl::FailedPreconditionError(
        StrCat(path, " exists and is not a socket: remove it, or choose another --socket"));
  }
  const absl::StatusOr<UniqueFd> connection = ConnectTo(path);
  if (connection.ok()) {
    const absl::StatusOr<Peer> peer = PeerOf(connection->get());
    return absl::AlreadyExistsError(StrCat("another program (process ", peer.ok() ? peer->pid : 0, ") listens at ",
                                           path, ": choose another --socket"));
  }
  if (absl::IsUnavailable(connection.status())) {
    return absl::AlreadyExistsError(StrCat("another program listens at ", path, ": choose another --socket"));
  }
  if (absl::IsNotFound(connection.status())) return env.RemoveFile(path);  // nobody listens
  return absl::Status(connection.status().code(),
                      StrCat(ToStd(connection.status().message()), ": choose another --socket"));
}

}  // namespace kernix
