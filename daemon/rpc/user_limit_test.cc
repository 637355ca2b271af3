// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/user_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const TestIdentity kAlice(1);
const TestIdentity kBob(2);

TEST(UserLimitTest, EachUserHasAsManyAsOneMayHave) {
  UserLimit limit("things", "max_things", 2);
  auto first = limit.Enter(kAlice);
  const auto second = limit.Enter(kAlice);
  ASSERT_THAT(second, IsOk());
  const absl::Status refused = limit.Enter(kAlice).status();
  EXPECT_EQ(KindOf(refused), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("user 1 has 2 things"), HasSubstr("raise max_things")));
  EXPECT_THAT(limit.Enter(kBob), IsOk()) << "another user";
  first->reset();
  EXPECT_THAT(limit.Enter(kAlice), IsOk());
}

TEST(UserLimitTest, ZeroIsNoLimit) {
  UserLimit limit("things", "max_things", 0);
  std::vector<std::unique_ptr<UserLimit::Pass>> passes;
  for (int i = 0; i < 1000; ++i) passes.push_back(limit.Enter(kAlice).value());
}

}  // namespace
}  // namespace kernix::server
