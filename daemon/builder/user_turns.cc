// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/user_turns.h"

namespace kernix::build {

void UserTurns::Take(UserId user) {
  const MutexLock lock(mutex_);
  while (taken_[user] >= at_once_) changed_.Wait(mutex_);
  ++taken_[user];
}

void UserTurns::GiveBack(UserId user) {
  const MutexLock lock(mutex_);
  const auto taken = taken_.find(user);
  if (--taken->second == 0) taken_.erase(taken);
  changed_.NotifyAll();
}

}  // namespace kernix::build
