// SPDX-License-Identifier: Apache-2.0
//
// What Env::Posix() asks the user database; see env.h.
#pragma once

#include <sys/types.h>

namespace kernix::posix {

bool IsPrivateGroup(gid_t group, uid_t user);

}  // namespace kernix::posix
