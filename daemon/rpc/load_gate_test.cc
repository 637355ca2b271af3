// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
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

constexpr uint64_t kMiB = 1 << 20;

v1::LoadRequest WithText(size_t bytes) {
  v1::LoadRequest request;
  request.add_source()->set_text(std::string(bytes, ';'));
  return request;
}

v1::LoadRequest WithHeaders(int count, size_t path_bytes) {
  v1::LoadRequest request = WithText(100);
  for (int i = 0; i < count; ++i) {
    v1::Header& header = *request.add_header();
    header.set_path(std::string(path_bytes, 'h'));
    header.set_digest(std::string(32, 'd'));
  }
  return request;
}

v1::LoadRequest WithUnits(int count) {
  v1::LoadRequest request;
  for (int i = 0; i < count; ++i) request.add_source()->set_label("a.cu");
  request.mutable_options()->set_separate_units(true);
  return request;
}

v1::LoadRequest WithFlags(v1::LoadRequest request, int count) {
  for (int i = 0; i < count; ++i) request.mutable_options()->add_compile_flags("-Wall");
  return request;
}

TEST(LoadCostTest, WhatPeopleLoadCostsLittle) {
  EXPECT_LT(LoadCost(WithText(5'000)), kMiB / 2);
  // So many at once are within the default of max_request_bytes_per_user, 512 MiB: as many loads as load_many() has
  // under way, with the headers of a large project or with preprocessed texts.
  EXPECT_LT(64 * LoadCost(WithHeaders(10'000, 40)), 512 * kMiB);
  EXPECT_LT(64 * LoadCost(WithText(kMiB)), 512 * kMiB);
  EXPECT_LT(LoadCost(WithText(64 * kMiB)), 512 * kMiB);
}

TEST(LoadCostTest, EachUnitHasTheFlagsAgain) {
  const auto of_flags = [](int units) {
    return LoadCost(WithFlags(WithUnits(units), 100)) - LoadCost(WithUnits(units));
  };
  EXPECT_GT(of_flags(100), 50 * of_flags(1));
}

TEST(LoadCostTest, EachArchitectureWhoseResultsAreKeptHasStepsOfItsOwn) {
  v1::LoadRequest request = WithFlags(WithUnits(10), 1000);
  request.set_language(v1::LANGUAGE_CUDA);
  request.mutable_options()->add_architectures("sm_90");
  const uint64_t once = LoadCost(request);
  request.mutable_options()->set_keep(true);
  EXPECT_GT(2 * LoadCost(request), 3 * once);
}

TEST(LoadCostTest, EmptyPartsCostMoreThanTheirBytes) {
  v1::LoadRequest request;
  for (int i = 0; i < 10'000; ++i) request.mutable_functions()->add_function();
  EXPECT_GT(LoadCost(request), 1000 * request.ByteSizeLong());
}

TEST(LoadCostTest, AnnotationsStandForFunctions) {
  v1::LoadRequest request;
  std::string& text = *request.add_source()->mutable_text();
  const uint64_t without = LoadCost(request);
  for (int i = 0; i < 1000; ++i) text += "// @BE f\n";
  EXPECT_LT(LoadCost(request), 2 * without);
  request.mutable_functions()->set_from_annotations(true);
  EXPECT_GT(LoadCost(request), 10 * without);
}

TEST(LoadCostTest, SaysWhatCostsMost) {
  EXPECT_EQ(CostliestPart(WithFlags(WithUnits(1000), 500)),
            "1000 sources, each compiled with 500 flags and 0 include paths");
  EXPECT_EQ(CostliestPart(WithText(kMiB)), "1048576 bytes of source text");
  EXPECT_EQ(CostliestPart(WithHeaders(10'000, 40)), "10000 headers");
}

}  // namespace

}  // namespace kernix::server
