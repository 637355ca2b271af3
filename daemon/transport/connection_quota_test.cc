// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/connection_quota.h"

#include <gtest/gtest.h>

#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kResourceExhausted;

const TestIdentity kAlice(1);
const TestIdentity kBob(2);

int EnterAll(ConnectionQuota& quota, const Identity& user) {
  int count = 0;
  while (quota.Enter(user).ok()) ++count;
  return count;
}

TEST(ConnectionQuotaTest, AUserHasAsManyAsOneMayHave) {
  ConnectionQuota quota(3, 1000);
  EXPECT_EQ(EnterAll(quota, kAlice), 3);
  EXPECT_THAT(quota.Enter(kAlice), HasError(kRefused, HasSubstr("raise max_connections_per_user")));
  EXPECT_THAT(quota.Enter(kBob), IsOk());
  quota.Leave(kAlice.id());
  EXPECT_THAT(quota.Enter(kAlice), IsOk());
}

TEST(ConnectionQuotaTest, WithoutALimitADescriptorIsLeftForTheNextUser) {
  ConnectionQuota quota(0, 1000);
  EXPECT_EQ(EnterAll(quota, kAlice), 500);
  EXPECT_THAT(quota.Enter(kAlice), HasError(kRefused, HasSubstr("LimitNOFILE")));
  EXPECT_EQ(EnterAll(quota, kBob), 250);
  for (uint32_t id = 3; id < 10; ++id) EXPECT_GT(EnterAll(quota, TestIdentity(id)), 0) << id;
}

TEST(ConnectionQuotaTest, WhoHasLeftDoesNotCount) {
  ConnectionQuota quota(0, 10);
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(quota.Enter(kAlice), IsOk());
    quota.Leave(kAlice.id());
  }
  EXPECT_EQ(EnterAll(quota, kBob), 5);
}

}  // namespace
}  // namespace kernix::server
