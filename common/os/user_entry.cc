// SPDX-License-Identifier: Apache-2.0
#include "common/os/user_entry.h"

#include <pwd.h>

#include <vector>

namespace kernix {

UserEntry LookUpUser(uid_t uid) {
  std::vector<char> buffer(16384);
  struct passwd entry;
  struct passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  return {.name = entry.pw_name, .home = entry.pw_dir};
}

}  // namespace kernix
