// SPDX-License-Identifier: Apache-2.0
//
// What the machine's user database says of groups, now.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kernix::server {

// The group of that name. kInvalidArgument, naming `setting`, when there is none.
absl::StatusOr<gid_t> GroupId(std::string_view setting, const std::string& name);

// Whether `group` is the first group of `user`, or lists that user as a member. False for a user whom the database does
// not know: which groups a process claims does not count.
bool IsMember(uid_t user, gid_t group);

}  // namespace kernix::server
