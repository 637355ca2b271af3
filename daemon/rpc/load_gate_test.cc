// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/base/error.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

CancellationPtr NewCancellation() { return std::make_shared<Cancellation>(); }

TEST(LoadGate, CountsThoseInside) {
  LoadGate gate;
  EXPECT_EQ(gate.inside(), 0);
  {
    const auto one = gate.Enter(NewCancellation());
    const auto two = gate.Enter(NewCancellation());
    EXPECT_EQ(gate.inside(), 2);
  }
  EXPECT_EQ(gate.inside(), 0);
}

TEST(LoadGate, ClosedItTurnsNewOnesAway) {
  LoadGate gate;
  const auto early = gate.Enter(NewCancellation());
  gate.Close();
  EXPECT_TRUE(gate.closed());
  EXPECT_THAT(gate.Enter(NewCancellation()), HasError(absl::StatusCode::kUnavailable, testing::HasSubstr("draining")));
  EXPECT_EQ(gate.inside(), 1);
}

TEST(LoadGate, WaitsForTheLastOneOnly) {
  LoadGate gate;
  auto permit = gate.Enter(NewCancellation());
  EXPECT_FALSE(gate.WaitUntilEmpty(MonotonicTime::min()));
  std::thread leaver([&] { permit->reset(); });
  EXPECT_TRUE(gate.WaitUntilEmpty(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  leaver.join();
}

TEST(LoadGate, CancelsThoseInside) {
  LoadGate gate;
  const CancellationPtr inside = NewCancellation();
  const CancellationPtr gone = NewCancellation();
  const auto permit = gate.Enter(inside);
  gate.Enter(gone)->reset();
  gate.CancelAll();
  EXPECT_TRUE(inside->cancelled());
  EXPECT_FALSE(gone->cancelled());
}

using ::testing::AllOf;
using ::testing::HasSubstr;

const TestIdentity kAlice(1);
const TestIdentity kBob(2);

TEST(UserLimitTest, EachUserHasAsManyAsOneMayHave) {
  MemEnv env;
  UserLimit limit(env, "things", "max_things", 2);
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
  MemEnv env;
  UserLimit limit(env, "things", "max_things", 0);
  std::vector<std::unique_ptr<UserLimit::Permit>> permits;
  for (int i = 0; i < 1000; ++i) permits.push_back(limit.Enter(kAlice).value());
}

TEST(UserLimitTest, RefusedOnesAskAgainInTheirOrderAsFastAsOthersEnd) {
  MemEnv env;
  UserLimit limit(env, "things", "max_things", 30);
  std::vector<std::unique_ptr<UserLimit::Permit>> permits;
  for (int i = 0; i < 30; ++i) permits.push_back(limit.Enter(kAlice).value());
  EXPECT_EQ(limit.NextTurn(kBob.id()), Duration(0)) << "who has nothing waits for nothing";
  const auto turn = [&] { return RetryAfter(limit.Enter(kAlice).status()); };
  const Duration first = turn();
  EXPECT_GT(first, Duration(0));
  EXPECT_EQ(turn(), 2 * first) << "one after the other";
  EXPECT_EQ(limit.NextTurn(kAlice.id()), 3 * first) << "in one line";
  env.AdvanceClock(3 * first);
  EXPECT_EQ(turn(), first) << "nobody is ahead any more";
  for (int i = 0; i < 29; ++i) {  // they end quickly
    env.AdvanceClock(Duration(10));
    permits.pop_back();
  }
  for (int i = 0; i < 29; ++i) permits.push_back(limit.Enter(kAlice).value());
  env.AdvanceClock(Duration(1'000));
  EXPECT_LT(turn(), first / 2);
  for (int i = 0; i < 10'000; ++i) (void)turn();
  EXPECT_EQ(turn(), Duration(5'000)) << "nobody is kept waiting for those who do not come again";
}

}  // namespace

}  // namespace kernix::server
