// SPDX-License-Identifier: Apache-2.0
//
// Starts daemons: this user's own, once for all clients; and one for a single load, if no daemon can have a run folder.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/connection/daemon_process.h"
#include "client/connection/endpoint.h"
#include "client/connection/grpc_call.h"
#include "kernix/client.h"

namespace kernix {

// Whether `status` is an error of StartDaemon() after which a daemon without a run folder, over a socket pair, can
// still serve.
bool OneshotMayHelp(const absl::Status& status);

// Marks `status` as such an error.
absl::Status WithOneshotHelp(absl::Status status);

// Talks to a daemon over a new connection. An error for which DaemonWasLost() holds means that it has not answered.
using Greet = std::function<absl::Status(PeerSocket)>;

// Makes `greet` talk to a serving daemon of `endpoint`, of kind kOwn and with a run folder, and returns what it
// returns. Among concurrent clients, the one with the start lock starts the daemon; the others connect as soon as it
// listens. If `unwanted` is set (a process that is draining or of another build), makes that process stop first.
// UNREACHABLE errors have the daemon's exit code and the end of its log; RESOURCE means that it cannot use its store.
// If `caller` gives up, returns with some error: immediately, or as soon as a daemon that this has started holds the
// run folder.
absl::Status StartDaemon(const ClientEnvironment& environment, const ClientOptions& options, const Endpoint& endpoint,
                         std::optional<pid_t> unwanted, const Greet& greet, Caller& caller);

// A kernixd for one load, if no daemon can have a run folder: over a socket pair, with no lock and no name in the file
// system. Destroy the daemon's process after its connection: then the next daemon finds the store free.
struct Oneshot {
  std::unique_ptr<DaemonProcess> daemon;
  std::unique_ptr<Http2Connection> connection;  // the daemon ends when this is destroyed
  std::string store_directory;
};

// Starts a daemon and waits until it answers. The daemon serves `store_directory`. If that folder cannot be used, or if
// another kernixd holds it, the daemon serves a folder of this process, which is removed when the process ends.
// UNREACHABLE errors have the end of the daemon's log.
absl::StatusOr<Oneshot> StartOneshot(const ClientEnvironment& environment, const ClientOptions& options,
                                     const std::string& store_directory, Caller& caller);

}  // namespace kernix
