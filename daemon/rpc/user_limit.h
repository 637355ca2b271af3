// SPDX-License-Identifier: Apache-2.0
//
// How many things of one kind each user may have at once.
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
  // `things` and `setting` are for the refusal: "fetches of artifacts", "max_fetches_per_user". `most` 0: any number.
  UserLimit(std::string things, std::string setting, int most);

  // Held as long as the thing is there. The limit must outlive it.
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

  // RESOURCE, with what to do, when `user` has as many as one may have.
  absl::StatusOr<std::unique_ptr<Pass>> Enter(const Identity& user);

 private:
  void Leave(UserId user);

  const std::string things_;
  const std::string setting_;
  const int most_;
  Mutex mutex_;
  std::map<UserId, int> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
