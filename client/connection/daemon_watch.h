// SPDX-License-Identifier: Apache-2.0
//
// Seeing when a daemon that was asked to stop is gone.
#pragma once

#include <sys/types.h>

#include "client/connection/client_environment.h"
#include "client/connection/endpoint.h"
#include "common/os/unique_fd.h"

namespace kernix {

// Made while the daemon still runs. Watches its process, and only where it cannot see that, as in another process
// namespace, its socket: to connect there would make systemd start the next one.
class DaemonWatch {
 public:
  // `pid`: what the daemon of `endpoint` says is its own. Keeps references to the first two.
  DaemonWatch(const ClientEnvironment& environment, const Endpoint& endpoint, pid_t pid);

  // Whether it has ended, also when another has its place by now. Not inside a ForkGate::Section.
  bool Gone() const;

 private:
  bool PlaceIsLeft() const;

  const ClientEnvironment& environment_;
  const Endpoint& endpoint_;
  pid_t listener_ = 0;
  UniqueFd process_;  // a pidfd
};

}  // namespace kernix
