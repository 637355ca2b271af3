// SPDX-License-Identifier: Apache-2.0
//
// For tests: groups and users of this machine other than this process's own.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <string>

namespace kernix::server {

struct OtherGroup {
  std::string name;
  gid_t gid = 0;
};

inline OtherGroup AGroupThatIsNotOurs() {
  OtherGroup other;
  setgrent();
  while (const struct group* group = getgrent()) {
    if (group->gr_gid == getegid()) continue;
    other = {group->gr_name, group->gr_gid};
    break;
  }
  endgrent();
  EXPECT_NE(other.name, "") << "this machine has one group only";
  return other;
}

struct KnownUser {
  uid_t uid = 0;
  std::string group;  // the primary group
};

inline KnownUser AUserThatIsNotUs() {
  KnownUser user;
  setpwent();
  while (const struct passwd* entry = getpwent()) {
    const struct group* group = getgrgid(entry->pw_gid);
    if (entry->pw_uid == 0 || entry->pw_uid == geteuid() || group == nullptr) continue;
    user = {entry->pw_uid, group->gr_name};
    break;
  }
  endpwent();
  EXPECT_NE(user.uid, 0u) << "this machine has no users";
  return user;
}

}  // namespace kernix::server
