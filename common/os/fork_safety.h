// SPDX-License-Identifier: Apache-2.0
//
// Process-wide locks and fork(): a child must not inherit a lock that another thread of its parent holds.
#pragma once

#include "common/base/mutex.h"

namespace kernix {

// From now on, every fork() waits until `mutex` is free and leaves it free in both processes. `mutex` must live for
// ever and must be a leaf lock: its holder takes no other lock, does not fork and does not block. Call it once per
// mutex.
void ProtectAcrossFork(Mutex& mutex);

// A Mutex for process-wide state, protected from its construction on. For objects that are never destroyed.
//
// Such an object must be constructed when the library is loaded. If a thread constructed it at its first use, a fork()
// in that moment would leave a child that waits for ever. The function whose static constructs the object (for callers
// that run even earlier) is therefore followed by a variable `kMadeAtLoad`, which calls that function.
class ABSL_LOCKABLE ForkSafeMutex : public Mutex {
 public:
  ForkSafeMutex() { ProtectAcrossFork(*this); }
};

}  // namespace kernix
