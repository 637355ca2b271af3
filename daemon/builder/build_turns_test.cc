// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/build_turns.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/await.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::build {
namespace {

using kernix::testing::CasdProcess;
using remote::ClaimState;

// One node's side.
struct Node {
  Node(Env& env, remote::Upstream& upstream, const std::string& name)
      : claims(upstream, name), turns(env, claims, work, stopped) {}

  // Does not wait until a claim has settled.
  bool MayBuild(const Digest& key, BuildTurns::Wait& wait) {
    bool may_build = turns.MayBuild(key, wait, nullptr);
    while (wait.settles) may_build = turns.MayBuild(key, wait, nullptr);
    return may_build;
  }
  bool MayBuild(const Digest& key) {
    BuildTurns::Wait wait;
    return MayBuild(key, wait);
  }
  // Returns when it is written. (buildbox-casd can lose a result that is written while another one reads it.)
  void End(const Digest& key, ClaimState state) {
    turns.End(key, state);
    std::promise<void> written;
    work.Push([&] { written.set_value(); });
    written.get_future().wait();
  }

  remote::BuildClaims claims;
  Cancellation stopped;
  BuildTurns turns;
  WorkQueue work{1};  // last: its tasks use the turns
};

class BuildTurnsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = new CasdProcess; }
  static void TearDownTestSuite() { delete std::exchange(engine_, nullptr); }

  static CasdProcess* engine_;
  remote::SteppedEnv env_;
  const std::unique_ptr<remote::Upstream> upstream_ = remote::OpenUpstream(env_, {.address = engine_->address()});
  Node a_{env_, *upstream_, "a"};
  Node b_{env_, *upstream_, "b"};
  // A key for one test: other tests share the engine.
  const Digest key_ = DigestOf(::testing::UnitTest::GetInstance()->current_test_info()->name());
};

CasdProcess* BuildTurnsTest::engine_ = nullptr;

TEST_F(BuildTurnsTest, OneNodeBuildsAndTheOthersWait) {
  EXPECT_TRUE(a_.MayBuild(key_));
  BuildTurns::Wait wait;
  EXPECT_FALSE(b_.MayBuild(key_, wait));
  EXPECT_GT(wait.pause.count(), 0);
  EXPECT_FALSE(b_.MayBuild(key_, wait));
  EXPECT_TRUE(b_.MayBuild(DigestOf("another key")));
}

// The result may have been written between the query for it and reading the claim.
TEST_F(BuildTurnsTest, WhatWasBuiltIsLookedForOnceMore) {
  EXPECT_TRUE(a_.MayBuild(key_));
  a_.End(key_, ClaimState::kBuilt);
  BuildTurns::Wait wait;
  EXPECT_FALSE(b_.MayBuild(key_, wait));
  EXPECT_TRUE(b_.MayBuild(key_, wait));  // it is not there: made with other headers, or dropped since
  EXPECT_FALSE(a_.MayBuild(key_));
}

TEST_F(BuildTurnsTest, EachNodeLearnsByItselfWhyABuildFails) {
  EXPECT_TRUE(a_.MayBuild(key_));
  BuildTurns::Wait wait;
  EXPECT_FALSE(b_.MayBuild(key_, wait));
  a_.End(key_, ClaimState::kFailed);
  EXPECT_TRUE(b_.MayBuild(key_, wait));
  EXPECT_TRUE(a_.MayBuild(key_));  // a later load takes a turn again
  EXPECT_FALSE(b_.MayBuild(key_));
}

TEST_F(BuildTurnsTest, NobodyWaitsForEver) {
  BuildTurns::Wait wait;
  uint64_t beat = 0;
  const auto begin = env_.Now();
  while (env_.Now() - begin <= BuildTurns::kLongestWait) {
    ASSERT_THAT(a_.claims.Write(key_, ++beat, ClaimState::kBuilding, nullptr), IsOk());
    EXPECT_FALSE(b_.MayBuild(key_, wait));
    env_.AdvanceClock(BuildTurns::kLongestWait / 3);
  }
  ASSERT_THAT(a_.claims.Write(key_, ++beat, ClaimState::kBuilding, nullptr), IsOk());
  EXPECT_TRUE(b_.MayBuild(key_, wait));
}

TEST_F(BuildTurnsTest, ANodeThatBuildsNothingWaitsForOneThatDoes) {
  BuildTurns::Wait wait;
  EXPECT_FALSE(b_.turns.OtherBuilds(key_, wait, nullptr)) << "nobody builds it";
  EXPECT_TRUE(a_.MayBuild(key_));
  EXPECT_TRUE(b_.turns.OtherBuilds(key_, wait, nullptr));
  EXPECT_GT(wait.pause.count(), 0);
  a_.End(key_, ClaimState::kBuilt);
  EXPECT_TRUE(b_.turns.OtherBuilds(key_, wait, nullptr)) << "the result may have come just after the query for it";
  EXPECT_FALSE(b_.turns.OtherBuilds(key_, wait, nullptr));
}

TEST_F(BuildTurnsTest, ANodeThatBuildsNothingDoesNotWaitForWhatFailedOrForASilentNode) {
  BuildTurns::Wait wait;
  ASSERT_THAT(a_.claims.Write(key_, 0, ClaimState::kBuilding, nullptr), IsOk());
  EXPECT_TRUE(b_.turns.OtherBuilds(key_, wait, nullptr));
  env_.AdvanceClock(BuildTurns::kSilence);
  EXPECT_FALSE(b_.turns.OtherBuilds(key_, wait, nullptr));
  ASSERT_THAT(a_.claims.Write(key_, 1, ClaimState::kBuilding, nullptr), IsOk());
  EXPECT_TRUE(b_.turns.OtherBuilds(key_, wait, nullptr));
  ASSERT_THAT(a_.claims.Write(key_, 0, ClaimState::kFailed, nullptr), IsOk());
  EXPECT_FALSE(b_.turns.OtherBuilds(key_, wait, nullptr));
}

// Whoever may write can say anything.
TEST_F(BuildTurnsTest, NobodyWaitsForEverForWhatIsSaidToBeBuilt) {
  BuildTurns::Wait wait;
  for (uint64_t beat = 0; beat < 4; ++beat) {
    ASSERT_THAT(a_.claims.Write(key_, beat, ClaimState::kBuilt, nullptr), IsOk());
    EXPECT_FALSE(b_.MayBuild(key_, wait));
    env_.AdvanceClock(BuildTurns::kLongestWait / 4);
  }
  ASSERT_THAT(a_.claims.Write(key_, 4, ClaimState::kBuilt, nullptr), IsOk());
  EXPECT_TRUE(b_.MayBuild(key_, wait));
}

TEST_F(BuildTurnsTest, NobodyWaitsForEverForAnEngineThatForgetsItsClaims) {
  kernix::testing::FaultProxy proxy(engine_->address());
  const auto upstream = remote::OpenUpstream(env_, {.address = proxy.address()});
  Node node(env_, *upstream, "c");
  ASSERT_THAT(a_.claims.Write(key_, 0, ClaimState::kLeft, nullptr), IsOk());
  proxy.Inject({.method = "UpdateActionResult", .times = 0, .answer = grpc::Status::OK});
  BuildTurns::Wait wait;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(node.MayBuild(key_, wait));
    env_.AdvanceClock(BuildTurns::kLongestWait / 4);
  }
  EXPECT_TRUE(node.MayBuild(key_, wait));
}

// buildbox-casd drops what it reads while it is written.
TEST_F(BuildTurnsTest, ANodeWhoseClaimIsLostClaimsAgain) {
  kernix::testing::FaultProxy proxy(engine_->address());
  const auto upstream = remote::OpenUpstream(env_, {.address = proxy.address()});
  Node node(env_, *upstream, "c");
  BuildTurns::Wait wait;
  EXPECT_FALSE(node.turns.MayBuild(key_, wait, nullptr));
  proxy.Inject({.method = "GetActionResult", .answer = grpc::Status(grpc::StatusCode::NOT_FOUND, "lost")});
  EXPECT_FALSE(node.turns.MayBuild(key_, wait, nullptr));
  EXPECT_TRUE(wait.settles);
  EXPECT_EQ(proxy.Calls("UpdateActionResult"), 2);
  ASSERT_THAT(a_.claims.Write(key_, 0, ClaimState::kBuilding, nullptr), IsOk());
  EXPECT_FALSE(node.MayBuild(key_, wait)) << "another node was the last to claim it";
  proxy.Inject({.method = "GetActionResult", .times = 0, .answer = grpc::Status(grpc::StatusCode::NOT_FOUND, "lost")});
  EXPECT_TRUE(node.MayBuild(DigestOf("never found"))) << "an engine that keeps nothing";
}

TEST_F(BuildTurnsTest, WhoWaitsGoesOnWaitingIfTheClaimIsLost) {
  kernix::testing::FaultProxy proxy(engine_->address());
  const auto upstream = remote::OpenUpstream(env_, {.address = proxy.address()});
  Node node(env_, *upstream, "c");
  ASSERT_THAT(a_.claims.Write(key_, 0, ClaimState::kBuilding, nullptr), IsOk());
  BuildTurns::Wait wait;
  EXPECT_FALSE(node.MayBuild(key_, wait));
  proxy.Inject({.method = "GetActionResult", .times = 0, .answer = grpc::Status(grpc::StatusCode::NOT_FOUND, "lost")});
  EXPECT_FALSE(node.MayBuild(key_, wait));
  EXPECT_TRUE(node.turns.OtherBuilds(key_, wait, nullptr));
  EXPECT_EQ(proxy.Calls("UpdateActionResult"), 0);
  env_.AdvanceClock(BuildTurns::kSilence);
  EXPECT_FALSE(node.turns.OtherBuilds(key_, wait, nullptr));
  EXPECT_TRUE(node.MayBuild(key_, wait));
}

TEST_F(BuildTurnsTest, AnotherNodeTakesTheTurnThatWasLeft) {
  EXPECT_TRUE(a_.MayBuild(key_));
  a_.End(key_, ClaimState::kLeft);
  EXPECT_TRUE(b_.MayBuild(key_));
  EXPECT_FALSE(a_.MayBuild(key_));
}

TEST_F(BuildTurnsTest, ANodeThatSaysNothingHasGone) {
  ASSERT_THAT(a_.claims.Write(key_, 0, ClaimState::kBuilding, nullptr), IsOk());
  BuildTurns::Wait wait;
  EXPECT_FALSE(b_.MayBuild(key_, wait));
  env_.AdvanceClock(BuildTurns::kSilence - Duration(1'000));
  EXPECT_FALSE(b_.MayBuild(key_, wait));
  ASSERT_THAT(a_.claims.Write(key_, 1, ClaimState::kBuilding, nullptr), IsOk());  // it still builds
  env_.AdvanceClock(BuildTurns::kSilence - Duration(1'000));
  EXPECT_FALSE(b_.MayBuild(key_, wait));
  env_.AdvanceClock(BuildTurns::kSilence);
  EXPECT_TRUE(b_.MayBuild(key_, wait));
}

TEST_F(BuildTurnsTest, ANodeThatBuildsSaysSoFromTimeToTime) {
  EXPECT_TRUE(a_.MayBuild(key_));
  Await("a beat", [&] {
    const auto claim = b_.claims.Read(key_, nullptr);
    return claim.ok() && *claim && (*claim)->beat > 0;
  });
  a_.End(key_, ClaimState::kBuilt);
}

TEST_F(BuildTurnsTest, ANodeBuildsIfTheEngineDoesNotAnswer) {
  const kernix::testing::TempFolder folder;
  const auto nobody =
      remote::OpenUpstream(env_, {.address = StrCat("unix://", folder.File("nobody")), .timeout = Duration(50)});
  Node node(env_, *nobody, "c");
  EXPECT_TRUE(node.MayBuild(key_));
  node.turns.End(key_, ClaimState::kBuilt);
}

}  // namespace
}  // namespace kernix::build
