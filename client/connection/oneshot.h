// SPDX-License-Identifier: Apache-2.0
//
// A kernixd for one load, if no daemon can have a place: over a socket pair, with no lock and no name in the file
// system.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/connection/caller.h"
#include "client/connection/client_environment.h"
#include "client/connection/daemon_process.h"
#include "client/connection/http2_connection.h"
#include "kernix/client.h"

namespace kernix {

// The destructor waits until the daemon has ended, so that the next one finds the store free. Destroy it after its
// connection.
class PrivateDaemon {
 public:
  explicit PrivateDaemon(DaemonProcess process) : process_(std::move(process)) {}
  ~PrivateDaemon() { AwaitExit(); }
  PrivateDaemon(const PrivateDaemon&) = delete;
  PrivateDaemon& operator=(const PrivateDaemon&) = delete;

  // Returns the exit code. Returns nullopt if the daemon has not ended within a second, as it should when its
  // connection is destroyed.
  std::optional<int> AwaitExit();

 private:
  DaemonProcess process_;
};

struct Oneshot {
  std::unique_ptr<PrivateDaemon> daemon;
  std::unique_ptr<Http2Connection> connection;  // the daemon ends when this is destroyed
  std::string store_directory;
};

// Starts a daemon and waits until it answers. The daemon serves `store_directory`. If that folder cannot be used, or if
// another kernixd holds it, the daemon serves a folder of this process, which is removed when the process ends.
// UNREACHABLE errors contain the daemon's last words.
absl::StatusOr<Oneshot> StartOneshot(const ClientEnvironment& environment, const ClientOptions& options,
                                     const std::string& store_directory, Caller& caller);

}  // namespace kernix
