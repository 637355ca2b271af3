// SPDX-License-Identifier: Apache-2.0
//
// The users of this machine: their identity, their groups in its user database, and who may administer the daemon.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/identity.h"

namespace kernix::server {

// Queries the machine's user database for the current groups.

// The group of that name. kInvalidArgument, naming `setting`, if there is none.
absl::StatusOr<gid_t> GroupId(std::string_view setting, const std::string& name);

// Whether `group` is the first group of `user`, or lists the user as a member. False for a user who is not in the
// database: the groups that a process claims do not count.
bool IsMember(uid_t user, gid_t group);

// Decides who may administer the daemon.

// True for root, the daemon's own user, and present members of `admin_group` (empty: no group).
bool IsAdministrator(uid_t user, const std::string& admin_group);

// Asks the user database for the name, which may be another machine's. `admin_group`: see IsAdministrator().
IdentityPtr LocalUser(uid_t uid, std::string admin_group);

}  // namespace kernix::server
