// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/local_user.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include "tests/support/mem_env.h"
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

constexpr uid_t kNobodys = 4'000'000'000u;

TEST(KnownUsersTest, RemembersUsersAndForSomeMinutesOtherNumbers) {
  MemEnv env;
  KnownUsers users(env);
  const uid_t user = AUserThatIsNotUs().uid;
  EXPECT_EQ(users.Recall(user), std::nullopt);
  EXPECT_TRUE(users.Ask(user));
  EXPECT_FALSE(users.Ask(kNobodys));
  EXPECT_THAT(users.Recall(user), testing::Optional(true));
  EXPECT_THAT(users.Recall(kNobodys), testing::Optional(false));
  env.AdvanceClock(std::chrono::minutes(11));
  EXPECT_THAT(users.Recall(user), testing::Optional(true));
  EXPECT_EQ(users.Recall(kNobodys), std::nullopt);
}

TEST(CallersTest, APrivateDaemonServesItsUserAndRoot) {
  MemEnv env;
  Callers callers(env, {});
  EXPECT_THAT(callers.Admit({.uid = 0}), IsOk());
  EXPECT_THAT(callers.Admit({.uid = geteuid()}), IsOk());
  EXPECT_THAT(callers.Admit({.uid = kAlice}),
              HasError(absl::StatusCode::kPermissionDenied, testing::HasSubstr("and root only")));
}

TEST(CallersTest, ASharedDaemonRefusesNumbersThatItHasAskedFor) {
  MemEnv env;
  Callers callers(env, {.shared = true});
  const uid_t user = AUserThatIsNotUs().uid;
  EXPECT_THAT(callers.Admit({.uid = kNobodys}), IsOk()) << "the database was not asked yet";
  EXPECT_EQ(callers.Identify(UserId{kNobodys}), nullptr);
  EXPECT_THAT(callers.Admit({.uid = kNobodys}),
              HasError(absl::StatusCode::kPermissionDenied, testing::HasSubstr("unknown_users")));
  EXPECT_NE(callers.Identify(UserId{user}), nullptr);
  EXPECT_THAT(callers.Admit({.uid = user}), IsOk());
}

TEST(CallersTest, UnknownNumbersMayBeServed) {
  MemEnv env;
  Callers callers(env, {.shared = true, .unknown_users = true});
  EXPECT_NE(callers.Identify(UserId{kNobodys}), nullptr);
  EXPECT_THAT(callers.Admit({.uid = kNobodys}), IsOk());
}

}  // namespace

}  // namespace kernix::server
