// SPDX-License-Identifier: Apache-2.0
//
// The daemon as a whole.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "daemon/app/options.h"

namespace kernix::server {

// Exit codes of kernixd.
enum ExitCode : int {
  kExitOk = 0,              // asked to stop, or idle
  kExitFailure = 1,         // something that should not happen
  kExitUsage = 2,           // flags or configuration
  kExitStoreUnusable = 3,   // the cache directory cannot be used
  kExitAlreadyRunning = 4,  // another kernixd serves this socket or store
  kExitDrainTimeout = 5,    // stopped with loads still running
};

// Runs a daemon to its end: opens the store, binds (or takes what systemd hands over), serves, says READY=1, and on
// SIGTERM, SIGINT, Shutdown() or idleness drains and stops. Blocks. Logs; returns an ExitCode.
int RunServer(Env& env, const ServerOptions& options);

// The whole of main(): ParseCommandLine, then RunServer.
int Main(int argc, char** argv);

}  // namespace kernix::server
