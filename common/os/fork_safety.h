// SPDX-License-Identifier: Apache-2.0
//
// Process-wide locks and fork(): a child must not inherit a lock that another thread of its parent held.
#pragma once

#include "common/base/mutex.h"

namespace kernix {

// From now on every fork() waits until `mutex` is free and leaves it free in both processes. `mutex` must live for ever
// and be a leaf: whoever holds it takes no other lock, does not fork and does not block. Call once a mutex.
void ProtectAcrossFork(Mutex& mutex);

// Registers what ProtectAcrossFork() needs with fork(). What is registered later runs before it: a handler that waits
// for threads which may want a protected lock calls this first.
void InstallForkSafety();

// A Mutex for process-wide state, protected from birth. For objects that are never destroyed.
//
// Such an object is made when the library is loaded: a fork() while another thread makes it, at its first use, leaves a
// child that waits for ever. A function's static that makes it (for those who are earlier still) is therefore followed
// by a variable `kMadeAtLoad`, which calls that function.
class ABSL_LOCKABLE ForkSafeMutex : public Mutex {
 public:
  ForkSafeMutex() { ProtectAcrossFork(*this); }
};

}  // namespace kernix
