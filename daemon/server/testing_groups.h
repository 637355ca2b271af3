// SPDX-License-Identifier: Apache-2.0
//
// For tests: a group of this machine that is not the one of this process.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
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

}  // namespace kernix::server
