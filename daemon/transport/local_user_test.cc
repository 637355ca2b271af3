// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/local_user.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/other_groups.h"

namespace kernix::server {
namespace {

// These users are not in the machine's user database.
constexpr uid_t kAlice = 70001;

TEST(LocalUserTest, IsKnownByTheNameOrElseTheUid) {
  EXPECT_EQ(LocalUser(0, "")->name(), "root");
  const IdentityPtr alice = LocalUser(kAlice, "");
  EXPECT_EQ(alice->id(), UserId{kAlice});
  EXPECT_EQ(alice->name(), "70001");
}

TEST(LocalUserTest, TheHighestUidIsKept) { EXPECT_EQ(ToNumber(LocalUser(4'294'967'294u, "")->id()), 4'294'967'294u); }

TEST(LocalUserTest, RootAndTheDaemonsUserAdminister) {
  EXPECT_TRUE(LocalUser(0, "")->IsAdministrator());
  EXPECT_TRUE(LocalUser(geteuid(), "")->IsAdministrator());
  EXPECT_FALSE(LocalUser(kAlice, "")->IsAdministrator());
}

TEST(LocalUserTest, MembersOfTheAdminGroupAdminister) {
  const KnownUser member = AUserThatIsNotUs();
  EXPECT_FALSE(LocalUser(member.uid, "")->IsAdministrator());
  EXPECT_TRUE(LocalUser(member.uid, member.group)->IsAdministrator());
  EXPECT_FALSE(LocalUser(kAlice, member.group)->IsAdministrator());
}

TEST(LocalUserTest, AnAdminGroupThatIsGoneHasNoMembers) {
  EXPECT_FALSE(LocalUser(AUserThatIsNotUs().uid, "no-such-group")->IsAdministrator());
  EXPECT_TRUE(LocalUser(0, "no-such-group")->IsAdministrator());
}

}  // namespace
}  // namespace kernix::server
