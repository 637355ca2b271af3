// SPDX-License-Identifier: Apache-2.0
//
// Queries the machine's user database for the current groups.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kernix::server {

// The group of that name. kInvalidArgument, naming `setting`, if there is none.
absl::StatusOr<gid_t> GroupId(std::string_view setting, const std::string& name);

// Whether `group` is the first group of `user`, or lists the user as a member. False for a user who is not in the
// database: the groups that a process claims do not count.
bool IsMember(uid_t user, gid_t group);

}  // namespace kernix::server
