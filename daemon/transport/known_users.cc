// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/known_users.h"

#include "common/os/user_entry.h"

namespace kernix::server {
namespace {

constexpr Duration kBelieved{10'000};
constexpr size_t kMostOthers = 10'000;

}  // namespace

bool KnownUsers::Ask(uid_t uid) {
  const bool is_user = !LookUpUser(uid).name.empty();
  const MutexLock lock(mutex_);
  if (is_user) {
    users_.insert(uid);
  } else {
    if (others_.size() >= kMostOthers) others_.clear();
    others_[uid] = env_.Now() + kBelieved;
  }
  return is_user;
}

std::optional<bool> KnownUsers::Recall(uid_t uid) {
  const MutexLock lock(mutex_);
  if (users_.contains(uid)) return true;
  const auto other = others_.find(uid);
  if (other == others_.end() || env_.Now() >= other->second) return std::nullopt;
  return false;
}

}  // namespace kernix::server
