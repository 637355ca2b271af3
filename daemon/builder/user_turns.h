// SPDX-License-Identifier: Apache-2.0
//
// Limits how many threads of a user do at once what briefly takes much memory. The user's other threads wait.
#pragma once

#include <map>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"

namespace kernix::build {

// Thread-safe.
class UserTurns {
 public:
  explicit UserTurns(int at_once) : at_once_(at_once) {}

  class Turn {
   public:
    // Waits for it. `turns` must outlive it.
    Turn(UserTurns& turns, UserId user) : turns_(turns), user_(user) { turns_.Take(user_); }
    ~Turn() { turns_.GiveBack(user_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    UserTurns& turns_;
    const UserId user_;
  };

 private:
  void Take(UserId user);
  void GiveBack(UserId user);

  const int at_once_;
  Mutex mutex_;
  CondVar changed_;
  std::map<UserId, int> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
