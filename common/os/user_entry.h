// SPDX-License-Identifier: Apache-2.0
//
// A user's entry in the user database.
#pragma once

#include <pwd.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace kernix {

// The texts are empty if the database has no such user.
struct UserEntry {
  std::string name;
  std::string home;
};

inline UserEntry LookUpUser(uid_t uid) {
  std::vector<char> buffer(16384);
  struct passwd entry;
  struct passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  return {.name = entry.pw_name, .home = entry.pw_dir};
}

}  // namespace kernix
