// SPDX-License-Identifier: Apache-2.0
//
// Limits how many connections each user may have open.
#pragma once

#include <map>

#include "absl/status/status.h"
#include "common/base/identity.h"

namespace kernix::server {

// Not thread-safe.
class ConnectionQuota {
 public:
  // Each user may have `max_per_user` connections (0: no limit), and all users together `capacity`. In addition, no
  // user may have more connections than are still free, so that whatever one user does, another one can connect.
  ConnectionQuota(int max_per_user, int capacity) : max_per_user_(max_per_user), capacity_(capacity) {}

  // Counts one more connection of `user`. kResourceExhausted, with what to do, if no more are allowed.
  absl::Status Enter(const Identity& user);
  void Leave(UserId user);

 private:
  const int max_per_user_;
  const int capacity_;
  int open_ = 0;
  std::map<UserId, int> open_of_user_;
};

// The number of connections that this process's descriptors suffice for if each needs `descriptors` of them. A quarter
// of all is reserved for compile jobs and files.
int ConnectionCapacity(int descriptors);

}  // namespace kernix::server
