// SPDX-License-Identifier: Apache-2.0
//
// Which numbers are users of the user database. A process may have others, such as the thousands of subordinate ones
// that a user namespace gives a member.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix::server {

// Thread-safe.
class KnownUsers {
 public:
  // `env`, the clock, must outlive it.
  explicit KnownUsers(Env& env) : env_(env) {}

  // Asks the database, which may take long, and remembers a user, and for ten minutes that there is none. If the
  // database fails, the number counts as a user's this time.
  bool Ask(uid_t uid);

  // What Ask() has said; nullopt: ask.
  std::optional<bool> Recall(uid_t uid);

 private:
  Env& env_;
  Mutex mutex_;
  std::set<uid_t> users_ ABSL_GUARDED_BY(mutex_);
  std::map<uid_t, MonotonicTime> others_ ABSL_GUARDED_BY(mutex_);  // with the time until which to believe that
};

}  // namespace kernix::server
