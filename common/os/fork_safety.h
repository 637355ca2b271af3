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
class ABSL_LOCKABLE ForkSafeMutex : public Mutex {
 public:
  ForkSafeMutex() { ProtectAcrossFork(*this); }
};

// The T of this process, with process-wide state and a ForkSafeMutex. It is never destroyed, and constructed when the
// library is loaded, or earlier by a caller that runs earlier. If a thread constructed it at its first use, a fork() in
// that moment would leave a child that waits for ever.
template <typename T>
class PerProcess {
 public:
  static T& Get() {
    static_cast<void>(&kMadeAtLoad);  // a use, without which there would be no such variable
    static auto* const object = new T;
    return *object;
  }

 private:
  static inline const bool kMadeAtLoad = (Get(), true);
};

}  // namespace kernix
