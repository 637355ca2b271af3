// SPDX-License-Identifier: Apache-2.0
//
// Stops a daemon that nobody can connect to, and detects when one that was asked to stop is gone.
#pragma once

#include <sys/types.h>

#include "absl/status/status.h"
#include "client/connection/client_environment.h"
#include "client/connection/endpoint.h"
#include "common/os/unique_fd.h"

namespace kernix {

// Create it while the daemon is running. Watches the daemon's process. If that is invisible, as in another process
// namespace, watches its socket instead. It does not connect, because systemd would start the next daemon.
class DaemonWatch {
 public:
  // `pid` is the process id that the daemon of `endpoint` reports, or the holder of its store. Keeps references to the
  // first two arguments.
  DaemonWatch(const ClientEnvironment& environment, const Endpoint& endpoint, pid_t pid);

  // Sends SIGTERM to it. The daemon drains as it is set to, and stops at once if it has been draining already.
  absl::Status Terminate() const;

  // Whether the daemon has ended, even if another one has its place by now.
  bool Gone() const;

 private:
  bool PlaceIsLeft() const;

  const ClientEnvironment& environment_;
  const Endpoint& endpoint_;
  pid_t listener_ = 0;
  UniqueFd process_;  // a pidfd
};

}  // namespace kernix
