// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/user_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(UserLimitTest, EachUserHasAsManyAsOneMayHave) {
  UserLimit limit("things", "max_things", 2);
  auto first = limit.Enter(1);
  const auto second = limit.Enter(1);
  ASSERT_THAT(second, IsOk());
  const absl::Status refused = limit.Enter(1).status();
  EXPECT_EQ(KindOf(refused), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("user 1 has 2 things"), HasSubstr("raise max_things")));
  EXPECT_THAT(limit.Enter(2), IsOk()) << "another user";
  first->reset();
  EXPECT_THAT(limit.Enter(1), IsOk());
}

TEST(UserLimitTest, ZeroIsNoLimit) {
  UserLimit limit("things", "max_things", 0);
  std::vector<std::unique_ptr<UserLimit::Pass>> passes;
  for (int i = 0; i < 1000; ++i) passes.push_back(limit.Enter(1).value());
}

}  // namespace
}  // namespace kernix::server
