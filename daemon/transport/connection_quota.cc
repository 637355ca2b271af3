// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/connection_quota.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "common/base/strings.h"

namespace kernix::server {

absl::Status ConnectionQuota::Enter(const Identity& user) {
  const int of_user = open_of_user_[user.id()];
  if (max_per_user_ > 0 && of_user >= max_per_user_) {
    return absl::ResourceExhaustedError(StrCat(
        "user ", user.name(), " has ", of_user, " connections open, the most that this kernixd allows one user: ",
        "close some, or raise max_connections_per_user (--max-connections-per-user, ",
        "KERNIX_MAX_CONNECTIONS_PER_USER)"));
  }
  if (of_user >= capacity_ - open_) {
    return absl::ResourceExhaustedError(StrCat(
        "user ", user.name(), " has ", of_user, " connections open, and this kernixd has descriptors for only ",
        capacity_,
        " connections of all users: close some, or raise its limit (ulimit -n; LimitNOFILE= of a systemd unit)"));
  }
  ++open_;
  ++open_of_user_[user.id()];
  return absl::OkStatus();
}

void ConnectionQuota::Leave(UserId user) {
  const auto found = open_of_user_.find(user);
  if (--found->second == 0) open_of_user_.erase(found);
  --open_;
}

int ConnectionCapacity(int descriptors) {
  struct rlimit limit {};
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return static_cast<int>(kMost);
  return static_cast<int>(std::min(limit.rlim_cur / 4 * 3 / descriptors, kMost));
}

}  // namespace kernix::server
