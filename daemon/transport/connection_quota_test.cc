// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/connection_quota.h"

#include <gtest/gtest.h>

#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kResourceExhausted;

int EnterAll(ConnectionQuota& quota, uid_t user) {
  int count = 0;
  while (quota.Enter(user).ok()) ++count;
  return count;
}

TEST(ConnectionQuotaTest, AUserHasAsManyAsOneMayHave) {
  ConnectionQuota quota(3, 1000);
  EXPECT_EQ(EnterAll(quota, 1), 3);
  EXPECT_THAT(quota.Enter(1), HasError(kRefused, HasSubstr("raise max_connections_per_user")));
  EXPECT_THAT(quota.Enter(2), IsOk());
  quota.Leave(1);
  EXPECT_THAT(quota.Enter(1), IsOk());
}

TEST(ConnectionQuotaTest, WithoutALimitADescriptorIsLeftForTheNextUser) {
  ConnectionQuota quota(0, 1000);
  EXPECT_EQ(EnterAll(quota, 1), 500);
  EXPECT_THAT(quota.Enter(1), HasError(kRefused, HasSubstr("LimitNOFILE")));
  EXPECT_EQ(EnterAll(quota, 2), 250);
  for (uid_t user = 3; user < 10; ++user) EXPECT_GT(EnterAll(quota, user), 0) << user;
}

TEST(ConnectionQuotaTest, WhoHasLeftDoesNotCount) {
  ConnectionQuota quota(0, 10);
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(quota.Enter(1), IsOk());
    quota.Leave(1);
  }
  EXPECT_EQ(EnterAll(quota, 2), 5);
}

}  // namespace
}  // namespace kernix::server
