// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C.
#pragma once

namespace kernix::ctl {

// From now on, a Ctrl-C is noted, so that a load can be cancelled and the daemon stops building for it. A second one
// ends this process at once.
void CatchInterrupt();

bool Interrupted();

}  // namespace kernix::ctl
