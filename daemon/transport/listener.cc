// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"
#include "common/os/systemd.h"
#include "common/os/unix_socket.h"
#include "daemon/transport/local_user.h"

namespace kernix::server {
namespace {

constexpr std::string_view kSocketSuffix = ".sock";
constexpr Duration kLockRound{50};

// The process that listens at `path`; nullopt if there is none.
std::optional<pid_t> ListenerAt(const std::string& path) {
  const absl::StatusOr<UniqueFd> connection = ConnectTo(path);
  if (!connection.ok()) return std::nullopt;
  const absl::StatusOr<Peer> peer = PeerOf(connection->get());
  return peer.ok() ? std::optional(peer->pid) : std::nullopt;
}

// Before listen(): until then nobody can connect, so the file's initial mode from bind() does not matter.
absl::Status SetAccess(const char* path, const ListenerOptions& options) {
  if (options.for_group && !options.group.empty()) {
    KERNIX_ASSIGN_OR_RETURN(const gid_t group, GroupId("socket_group", options.group));
    if (chown(path, static_cast<uid_t>(-1), group) != 0) {
      return ErrnoStatus(errno, StrCat("give group ", options.group, " to the socket"), options.path);
    }
  }
  if (chmod(path, options.for_group ? 0660 : 0600) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "set the mode of", options.path);
}

// Where a socket is until it listens. A path that may not be longer is its place from the start.
std::string StagedPathOf(const std::string& path) {
  std::string staged = StrCat(path, "~");
  return staged.size() > kMaxSocketPath ? path : staged;
}

absl::Status ListenAt(const std::string& path, int fd, const ListenerOptions& options) {
  const SocketAddress address(path);
  if (bind(fd, address.get(), address.size()) != 0) return ErrnoStatus(errno, "bind", options.path);
  KERNIX_RETURN_IF_ERROR(SetAccess(path.c_str(), options));
  // A full queue turns clients away, and hundreds of clients may start at once.
  return listen(fd, SOMAXCONN) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "listen on", options.path);
}

absl::Status CheckInherited(int fd) {
  if (ListensAtUnixSocket(fd)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "systemd did not pass a listening Unix stream socket: use ListenStream=/path in "
      "the socket unit");
}

std::string BoundPath(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return address.sun_path;
}

}  // namespace

std::string LockPathOf(const std::string& socket) {
  if (!socket.ends_with(kSocketSuffix)) return StrCat(socket, ".lock");
  return StrCat(socket.substr(0, socket.size() - kSocketSuffix.size()), ".lock");
}

absl::StatusOr<std::unique_ptr<FileLock>> ClaimSocket(Env& env, const std::string& socket, Duration patience) {
  if (const absl::Status fits = CheckSocketPath(socket); !fits.ok()) {
    return absl::InvalidArgumentError(StrCat("--socket: ", fits.message()));
  }
  const MonotonicTime deadline = env.Now() + patience;
  while (true) {
    absl::StatusOr<std::unique_ptr<FileLock>> lock = env.LockFile(LockPathOf(socket), env.Now() + kLockRound);
    if (!absl::IsDeadlineExceeded(lock.status())) return lock;
    if (const std::optional<pid_t> pid = ListenerAt(socket)) {
      return absl::AlreadyExistsError(StrCat("kernixd (process ", *pid, ") already serves ", socket));
    }
    if (env.Now() >= deadline) {
      return absl::AlreadyExistsError(StrCat("another kernixd holds ", LockPathOf(socket), " but does not answer at ",
                                             socket, ": it is starting or stopping, or it hangs"));
    }
  }
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(Env& env, const ListenerOptions& options) {
  KERNIX_RETURN_IF_ERROR(CheckSocketPath(options.path));
  // We hold the lock, so a socket that nobody answers belonged to a daemon that died.
  KERNIX_RETURN_IF_ERROR(RemoveStaleSocket(env, options.path));
  const std::string staged = StagedPathOf(options.path);
  const bool is_staged = staged != options.path;
  if (is_staged) KERNIX_RETURN_IF_ERROR(RemoveStaleSocket(env, staged));
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.ok()) return ErrnoStatus(errno, "make a socket for", options.path);
  absl::Status status = ListenAt(staged, fd.get(), options);
  OwnFiles file(env);
  if (const absl::StatusOr<FileInfo> info = env.Stat(staged); info.ok()) file.Add(options.path, FileId::Of(*info));
  if (status.ok() && is_staged) status = env.Rename(staged, options.path);
  if (!status.ok()) {
    if (is_staged) env.RemoveFile(staged).IgnoreError();  // at its own place, it may be another program's
    return status;
  }
  return std::unique_ptr<Listener>(new Listener(env, std::move(fd), options.path, std::move(file), /*owns_file=*/true));
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::FromSystemd(Env& env) {
  const int count = TakePassedDescriptors();
  if (count == 0) return std::unique_ptr<Listener>();
  if (count > 1) {
    return absl::InvalidArgumentError(StrCat("systemd passed ", count, " sockets; kernixd expects one"));
  }
  UniqueFd fd(kFirstPassedDescriptor);
  KERNIX_RETURN_IF_ERROR(CheckInherited(fd.get()));
  // Listens again, because a client sees the identity of the last process that called listen(), which was systemd.
  if (listen(fd.get(), SOMAXCONN) != 0) return ErrnoStatus(errno, "listen on", "the socket that systemd passed");
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  std::string path = BoundPath(fd.get());
  OwnFiles file(env);
  file.Add(path);
  return std::unique_ptr<Listener>(
      new Listener(env, std::move(fd), std::move(path), std::move(file), /*owns_file=*/false));
}

Listener::~Listener() {
  // Removes the name first: new clients then start another daemon instead of queueing on a socket that nobody accepts
  // from.
  if (owns_file_ && file_.FirstLost().empty()) env_.RemoveFile(path_).IgnoreError();
}

}  // namespace kernix::server
