// SPDX-License-Identifier: Apache-2.0
#include "client/connection/daemon_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/os/posix_error.h"

namespace kernix {

DaemonWatch::DaemonWatch(const ClientEnvironment& environment, const Endpoint& endpoint, pid_t pid)
    : environment_(environment), endpoint_(endpoint) {
  const absl::StatusOr<PeerSocket> peer = ConnectTo(environment_, endpoint_);
  listener_ = peer.ok() ? peer->pid : 0;
  // Otherwise, the process id means another process here, or none.
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const bool is_daemon = listener_ == pid || HolderOf(environment_, endpoint_) == pid;
  if (is_daemon) process_ = std::move(process);
}

absl::Status DaemonWatch::Terminate() const {
  if (syscall(SYS_pidfd_send_signal, process_.get(), SIGTERM, nullptr, 0) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "stop kernixd, which holds the store", endpoint_.store_directory);
}

bool DaemonWatch::Gone() const {
  if (!process_.ok()) return PlaceIsLeft();
  pollfd ended{process_.get(), POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

// For this user's own daemon, the lock tells, if there is one: that daemon may have another place.
bool DaemonWatch::PlaceIsLeft() const {
  const absl::StatusOr<PeerSocket> peer = ConnectTo(environment_, endpoint_);
  if (peer.ok()) return peer->pid != listener_;
  if (!absl::IsNotFound(peer.status())) return false;
  if (endpoint_.kind != EndpointKind::kOwn) return true;
  const auto lock = environment_.env->TryLockFile(endpoint_.place.lock);
  return lock.ok() || absl::IsNotFound(lock.status());
}

}  // namespace kernix
