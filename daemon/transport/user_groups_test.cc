// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/user_groups.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>

#include "tests/support/other_groups.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

TEST(UserGroupsTest, AGroupThatIsNotThereIsNamedWithItsSetting) {
  const absl::StatusOr<gid_t> group = GroupId("admin_group", "no-such-group");
  EXPECT_TRUE(absl::IsInvalidArgument(group.status()));
  EXPECT_THAT(std::string(group.status().message()), testing::HasSubstr("admin_group: there is no group"));
}

TEST(UserGroupsTest, TheFirstGroupOfAUserCounts) {
  const KnownUser user = AUserThatIsNotUs();
  EXPECT_TRUE(IsMember(user.uid, *GroupId("g", user.group)));
  EXPECT_FALSE(IsMember(user.uid, 4'000'000'000u));
}

TEST(UserGroupsTest, TheMembersThatAGroupListsCount) {
  setgrent();
  int seen = 0;
  while (const struct group* group = getgrent()) {
    for (char** member = group->gr_mem; *member != nullptr; ++member) {
      const struct passwd* user = getpwnam(*member);
      if (user == nullptr) continue;
      ++seen;
      EXPECT_TRUE(IsMember(user->pw_uid, group->gr_gid)) << *member << " in " << group->gr_name;
    }
  }
  endgrent();
  if (seen == 0) GTEST_SKIP() << "no group of this machine lists a member";
}

TEST(UserGroupsTest, AUserWhomNobodyKnowsIsInNoGroup) { EXPECT_FALSE(IsMember(4'000'000'000u, 4'000'000'000u)); }

}  // namespace
}  // namespace kernix::server
