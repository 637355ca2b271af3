// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/known_users.h"

#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <vector>

namespace kernix::server {
namespace {

constexpr Duration kBelieved{600'000};
constexpr size_t kMostOthers = 200'000;

// nullopt if the database fails: the other errors mean that it has no such user.
std::optional<bool> LookUp(uid_t uid) {
  std::vector<char> buffer(16384);
  struct passwd entry;
  struct passwd* found = nullptr;
  const int error = getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  constexpr int kFailures[] = {EIO, EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ERANGE};
  if (std::find(std::begin(kFailures), std::end(kFailures), error) != std::end(kFailures)) return std::nullopt;
  return found != nullptr;
}

}  // namespace

bool KnownUsers::Ask(uid_t uid) {
  const std::optional<bool> is_user = LookUp(uid);
  if (!is_user) return true;
  const MutexLock lock(mutex_);
  if (*is_user) {
    users_.insert(uid);
  } else {
    if (others_.size() >= kMostOthers) others_.clear();
    others_[uid] = env_.Now() + kBelieved;
  }
  return *is_user;
}

std::optional<bool> KnownUsers::Recall(uid_t uid) {
  const MutexLock lock(mutex_);
  if (users_.contains(uid)) return true;
  const auto other = others_.find(uid);
  if (other == others_.end() || env_.Now() >= other->second) return std::nullopt;
  return false;
}

}  // namespace kernix::server
