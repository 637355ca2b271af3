// SPDX-License-Identifier: Apache-2.0
#include "common/os/fork_safety.h"

#include <pthread.h>

#include <vector>

namespace kernix {
namespace {

struct Protected {
  Mutex mutex;
  std::vector<Mutex*> leaves ABSL_GUARDED_BY(mutex);
};

Protected& AllProtected() {
  static auto* all = new Protected;
  return *all;
}

[[maybe_unused]] const Protected& kMadeAtLoad = AllProtected();

// The handlers below release the locks that this function takes, which the analysis cannot follow.
void LockAll() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Protected& all = AllProtected();
  all.mutex.Lock();
  for (Mutex* leaf : all.leaves) leaf->Lock();
}

void UnlockAll() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Protected& all = AllProtected();
  for (Mutex* leaf : all.leaves) leaf->Unlock();
  all.mutex.Unlock();
}

}  // namespace

void ProtectAcrossFork(Mutex& mutex) {
  [[maybe_unused]] static const int installed = pthread_atfork(LockAll, UnlockAll, UnlockAll);
  Protected& all = AllProtected();
  MutexLock lock(all.mutex);
  all.leaves.push_back(&mutex);
}

}  // namespace kernix
