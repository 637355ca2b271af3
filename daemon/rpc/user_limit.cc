// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/user_limit.h"

#include <utility>

#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::server {

UserLimit::UserLimit(std::string things, std::string setting, int most)
    : things_(std::move(things)), setting_(std::move(setting)), most_(most) {}

absl::StatusOr<std::unique_ptr<UserLimit::Pass>> UserLimit::Enter(const Identity& user) {
  const MutexLock lock(mutex_);
  int& count = counts_[user.id()];
  if (most_ > 0 && count >= most_) {
    return MakeBusyError(StrCat("user ", user.name(), " has ", count, " ", things_,
                                " under way, the most that this kernixd allows one user: wait for some of them, or "
                                "raise ",
                                setting_, " in its config"));
  }
  ++count;
  return std::make_unique<Pass>(*this, user.id());
}

void UserLimit::SetMost(int most) {
  const MutexLock lock(mutex_);
  most_ = most;
}

void UserLimit::Leave(UserId user) {
  const MutexLock lock(mutex_);
  const auto count = counts_.find(user);
  if (--count->second == 0) counts_.erase(count);
}

}  // namespace kernix::server
