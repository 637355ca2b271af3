// SPDX-License-Identifier: Apache-2.0
//
// Detects when a daemon that was asked to stop is gone.
#pragma once

#include <sys/types.h>

#include "client/connection/client_environment.h"
#include "client/connection/endpoint.h"
#include "common/os/unique_fd.h"

namespace kernix {

// Create it while the daemon is running. Watches the daemon's process. If that is invisible, as in another process
// namespace, watches its socket instead. It does not connect, because systemd would start the next daemon.
class DaemonWatch {
 public:
  // `pid` is the process id that the daemon of `endpoint` reports. Keeps references to the first two arguments.
  DaemonWatch(const ClientEnvironment& environment, const Endpoint& endpoint, pid_t pid);

  // Whether the daemon has ended, even if another one has its place by now. Do not call it inside a ForkGate::Section.
  bool Gone() const;

 private:
  bool PlaceIsLeft() const;

  const ClientEnvironment& environment_;
  const Endpoint& endpoint_;
  pid_t listener_ = 0;
  UniqueFd process_;  // a pidfd
};

}  // namespace kernix
