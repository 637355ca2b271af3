// SPDX-License-Identifier: Apache-2.0
//
// Decides who may administer the daemon.
#pragma once

#include <sys/types.h>

#include <string>

namespace kernix::server {

// True for root, the daemon's own user, and present members of `admin_group` (empty: no group).
bool IsAdministrator(uid_t user, const std::string& admin_group);

}  // namespace kernix::server
