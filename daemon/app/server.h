// SPDX-License-Identifier: Apache-2.0
//
// Entry points of the daemon.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/app/options.h"

namespace kernix::server {

// Entry points of the daemon.

// Runs a daemon to its end: opens the store, binds the socket (or takes it from systemd), serves, reports READY=1, and
// drains and stops on SIGTERM, SIGINT, Shutdown() or idleness. Blocks. Logs; returns a KernixdExit.
// `read` reads the options again when the daemon is told to; may be null.
int RunServer(Env& env, ServerOptions options, ReadOptions read);

// The whole of main(): ParseCommandLine(), then RunServer().
int Main(int argc, char** argv);

}  // namespace kernix::server
