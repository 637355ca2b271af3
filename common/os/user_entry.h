// SPDX-License-Identifier: Apache-2.0
//
// A user's entry in the user database.
#pragma once

#include <sys/types.h>

#include <string>

namespace kernix {

// The texts are empty if the database has no such user.
struct UserEntry {
  std::string name;
  std::string home;
};

UserEntry LookUpUser(uid_t uid);

}  // namespace kernix
