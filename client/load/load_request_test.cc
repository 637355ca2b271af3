// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Variables;

std::string ErrorOf(const absl::StatusOr<LoadPolicy>& policy) {
  EXPECT_FALSE(policy.ok());
  if (policy.ok()) return "";
  EXPECT_EQ(KindOf(policy.status()), v1::ErrorDetail::INVALID_REQUEST);
  return std::string(policy.status().message());
}

TEST(LoadPolicyTest, AnOptionCountsMoreThanTheEnvironment) {
  LoadOptions options;
  EXPECT_EQ(PolicyOf(options, Variables({})).value(), LoadPolicy::kBuild);
  const GetEnv cached = Variables({{"KERNIX_POLICY", "cached"}});
  EXPECT_EQ(PolicyOf(options, cached).value(), LoadPolicy::kCached);
  options.policy = LoadPolicy::kBuild;
  EXPECT_EQ(PolicyOf(options, cached).value(), LoadPolicy::kBuild);
  options.policy = LoadPolicy::kCached;
  EXPECT_EQ(PolicyOf(options, Variables({{"KERNIX_POLICY", "build"}})).value(), LoadPolicy::kCached);
}

TEST(LoadPolicyTest, AnErrorListsThePolicies) {
  EXPECT_THAT(ErrorOf(PolicyNamed("never", "policy")),
              AllOf(HasSubstr("policy is \"never\""), HasSubstr("build and cached")));
  EXPECT_THAT(ErrorOf(PolicyOf({}, Variables({{"KERNIX_POLICY", "chached"}}))),
              AllOf(HasSubstr("KERNIX_POLICY is \"chached\""), HasSubstr("Did you mean cached?")));
}

TEST(LoadPolicyTest, ALoadCannotBeForcedAndCached) {
  LoadOptions options;
  options.force_rebuild = true;
  EXPECT_EQ(PolicyOf(options, Variables({})).value(), LoadPolicy::kBuild);
  EXPECT_THAT(ErrorOf(PolicyOf(options, Variables({{"KERNIX_POLICY", "cached"}}))), HasSubstr("KERNIX_POLICY=cached"));
  options.policy = LoadPolicy::kCached;
  EXPECT_THAT(ErrorOf(PolicyOf(options, Variables({}))), HasSubstr("the policy \"cached\" forbids"));
  options.frozen = true;
  EXPECT_THAT(ErrorOf(PolicyOf(options, Variables({}))), HasSubstr("a frozen process forbids"));
}

}  // namespace

}  // namespace kernix
