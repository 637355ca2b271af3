// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/administrators.h"

#include <unistd.h>

#include "daemon/transport/user_groups.h"

namespace kernix::server {

bool IsAdministrator(uid_t user, const std::string& admin_group) {
  if (user == 0 || user == geteuid()) return true;
  if (admin_group.empty()) return false;
  const absl::StatusOr<gid_t> group = GroupId("admin_group", admin_group);
  return group.ok() && IsMember(user, *group);
}

}  // namespace kernix::server
