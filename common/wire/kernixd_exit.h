// SPDX-License-Identifier: Apache-2.0
//
// What kernixd says by its exit code to whoever started it. docs/operations.md documents them.
#pragma once

namespace kernix {

enum KernixdExit : int {
  kExitOk = 0,              // asked to stop, or idle
  kExitFailure = 1,         // something that should not happen
  kExitUsage = 2,           // flags or configuration
  kExitStoreUnusable = 3,   // the cache directory cannot be used
  kExitAlreadyRunning = 4,  // another kernixd serves this socket or store
  kExitDrainTimeout = 5,    // stopped with loads still running
};

}  // namespace kernix
