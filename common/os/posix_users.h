// SPDX-License-Identifier: Apache-2.0
//
// The user database queries of Env::Posix(); see env.h.
#pragma once

#include <sys/types.h>

namespace kernix::posix {

bool IsPrivateGroup(gid_t group, uid_t user);

}  // namespace kernix::posix
