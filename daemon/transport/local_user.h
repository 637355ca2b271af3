// SPDX-License-Identifier: Apache-2.0
//
// The identity of a user of this machine.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/base/identity.h"

namespace kernix::server {

// `admin_group`: see IsAdministrator().
IdentityPtr LocalUser(uid_t uid, std::string admin_group);

}  // namespace kernix::server
