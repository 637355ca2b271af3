// SPDX-License-Identifier: Apache-2.0
//
// Limits how many things of one kind each user may have at once.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"

namespace kernix::server {

// Thread-safe.
class UserLimit {
 public:
  // `things` and `setting` appear in the refusal: "fetches of artifacts", "max_fetches_per_user". `most` 0: no limit.
  UserLimit(std::string things, std::string setting, int most);

  // Held as long as the thing exists. The limit must outlive it.
  class Pass {
   public:
    Pass(UserLimit& limit, UserId user) : limit_(limit), user_(user) {}
    ~Pass() { limit_.Leave(user_); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    UserLimit& limit_;
    const UserId user_;
  };

  // MakeBusyError(), with what to do, if `user` already has the allowed number.
  absl::StatusOr<std::unique_ptr<Pass>> Enter(const Identity& user);

  // Changes the limit. Users who have more than that keep it.
  void SetMost(int most);

 private:
  void Leave(UserId user);

  const std::string things_;
  const std::string setting_;
  Mutex mutex_;
  int most_ ABSL_GUARDED_BY(mutex_);
  std::map<UserId, int> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
