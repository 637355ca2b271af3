// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/known_users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/mem_env.h"
#include "tests/support/other_groups.h"

namespace kernix::server {
namespace {

using testing::Optional;

constexpr uid_t kNobodys = 4'000'000'000u;

TEST(KnownUsersTest, RemembersUsersAndForSomeMinutesOtherNumbers) {
  MemEnv env;
  KnownUsers users(env);
  const uid_t user = AUserThatIsNotUs().uid;
  EXPECT_EQ(users.Recall(user), std::nullopt);
  EXPECT_TRUE(users.Ask(user));
  EXPECT_FALSE(users.Ask(kNobodys));
  EXPECT_THAT(users.Recall(user), Optional(true));
  EXPECT_THAT(users.Recall(kNobodys), Optional(false));
  env.AdvanceClock(std::chrono::minutes(11));
  EXPECT_THAT(users.Recall(user), Optional(true));
  EXPECT_EQ(users.Recall(kNobodys), std::nullopt);
}

}  // namespace
}  // namespace kernix::server
