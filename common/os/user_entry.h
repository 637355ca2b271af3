// SPDX-License-Identifier: Apache-2.0
//
// What the user database says of a user.
#pragma once

#include <sys/types.h>

#include <string>

namespace kernix {

// Empty texts when the database has no such user.
struct UserEntry {
  std::string name;
  std::string home;
};

UserEntry LookUpUser(uid_t uid);

}  // namespace kernix
