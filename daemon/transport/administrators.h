// SPDX-License-Identifier: Apache-2.0
//
// Who may do what concerns everybody.
#pragma once

#include <sys/types.h>

#include <string>

namespace kernix::server {

// Root, the daemon's own user, and who is in `admin_group` by now (empty: nobody).
bool IsAdministrator(uid_t user, const std::string& admin_group);

}  // namespace kernix::server
