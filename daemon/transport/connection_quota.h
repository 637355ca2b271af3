// SPDX-License-Identifier: Apache-2.0
//
// How many connections each user may have open.
#pragma once

#include <map>

#include "absl/status/status.h"
#include "common/base/identity.h"

namespace kernix::server {

// Not thread-safe.
class ConnectionQuota {
 public:
  // Users may have `max_per_user` each (0: any number) and `capacity` together. Nobody may have more than are still
  // free either, so that whatever one of them does, another one can connect.
  ConnectionQuota(int max_per_user, int capacity) : max_per_user_(max_per_user), capacity_(capacity) {}

  // Counts one more connection of `user`. kResourceExhausted, which says what to do, when there may be no more.
  absl::Status Enter(const Identity& user);
  void Leave(UserId user);

 private:
  const int max_per_user_;
  const int capacity_;
  int open_ = 0;
  std::map<UserId, int> open_of_user_;
};

// As many as the descriptors of this process are for: a connection needs two, and a quarter is for compile jobs and
// files.
int ConnectionCapacity();

}  // namespace kernix::server
