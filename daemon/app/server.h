// SPDX-License-Identifier: Apache-2.0
//
// The daemon as a whole.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/app/options.h"

namespace kernix::server {

// Runs a daemon to its end: opens the store, binds (or takes what systemd hands over), serves, says READY=1, and on
// SIGTERM, SIGINT, Shutdown() or idleness drains and stops. Blocks. Logs; returns a KernixdExit.
int RunServer(Env& env, const ServerOptions& options);

// The whole of main(): ParseCommandLine, then RunServer.
int Main(int argc, char** argv);

}  // namespace kernix::server
