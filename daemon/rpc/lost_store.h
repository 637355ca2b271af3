// SPDX-License-Identifier: Apache-2.0
//
// What kernixd does when somebody has removed its store.
#pragma once

#include "daemon/rpc/backend.h"

namespace kernix::server {

// If the store's files are no longer in place, closes the gate, asks the daemon to stop, and returns true: a client
// that finds the gate closed comes back to the next daemon, which makes the store anew. Looks at a dozen files.
bool LeaveLostStore(Backend& backend);

}  // namespace kernix::server
