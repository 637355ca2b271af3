// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/backend.h"

#include <unistd.h>

#include "daemon/server/user_groups.h"

namespace kernix::server {

bool Backend::MayAdminister(uid_t user) const {
  if (user == 0 || user == geteuid()) return true;
  if (options.admin_group.empty()) return false;
  const absl::StatusOr<gid_t> group = GroupId("admin_group", options.admin_group);
  return group.ok() && IsMember(user, *group);
}

}  // namespace kernix::server
