// SPDX-License-Identifier: Apache-2.0
//
// The exit codes of kernixd. docs/reference.md documents them.
#pragma once

namespace kernix {

enum KernixdExit : int {
  kExitOk = 0,              // stopped on request, or idle
  kExitFailure = 1,         // an unexpected error
  kExitUsage = 2,           // wrong flags or configuration
  kExitStoreUnusable = 3,   // the cache directory cannot be used
  kExitAlreadyRunning = 4,  // another kernixd serves this socket or store
  kExitDrainTimeout = 5,    // stopped while loads were still running
};

}  // namespace kernix
