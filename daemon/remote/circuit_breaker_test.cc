// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/circuit_breaker.h"

#include <gtest/gtest.h>

#include "tests/support/mem_env.h"

namespace kernix::remote {
namespace {

class CircuitBreakerTest : public ::testing::Test {
 protected:
  void FailOnce() { breaker_.Failed(breaker_.Ask().value(), absl::UnavailableError("away")); }
  void Open() {
    for (int i = 0; i < CircuitBreaker::kFailuresToOpen; ++i) FailOnce();
    ASSERT_EQ(breaker_.state().health, v1::UpstreamStatus::BROKEN);
  }

  MemEnv env_;
  CircuitBreaker breaker_{env_, "grpc://engine:1"};
};

TEST_F(CircuitBreakerTest, OpensAfterFailuresInARow) {
  EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::HEALTH_UNSPECIFIED);
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i < CircuitBreaker::kFailuresToOpen; ++i) FailOnce();
    breaker_.Answered(breaker_.Ask().value());
    EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::ANSWERS);
  }
  EXPECT_EQ(breaker_.openings().value(), 0U);
  Open();
  EXPECT_EQ(breaker_.openings().value(), 1U);
  EXPECT_EQ(breaker_.state().last_error, "away");
  EXPECT_EQ(breaker_.state().since_unix_ms, env_.UnixMillis());
  EXPECT_FALSE(breaker_.Ask());
}

TEST_F(CircuitBreakerTest, OnlyTheFailureThatOpensItSaysSo) {
  for (int i = 1; i < CircuitBreaker::kFailuresToOpen; ++i) {
    EXPECT_FALSE(breaker_.Failed(breaker_.Ask().value(), absl::UnavailableError("")));
  }
  const auto late = breaker_.Ask().value();
  EXPECT_TRUE(breaker_.Failed(breaker_.Ask().value(), absl::UnavailableError("")));
  EXPECT_FALSE(breaker_.Failed(late, absl::UnavailableError("")));
  EXPECT_EQ(breaker_.openings().value(), 1U);
}

TEST_F(CircuitBreakerTest, AsksOnceAfterAPauseThatGrowsToABound) {
  Open();
  Duration pause = CircuitBreaker::kFirstPause;
  for (int probes = 0; probes < 10; ++probes) {
    env_.AdvanceClock(pause - Duration(1));
    EXPECT_FALSE(breaker_.Ask()) << probes;
    env_.AdvanceClock(Duration(1));
    const auto probe = breaker_.Ask();
    ASSERT_TRUE(probe) << probes;
    EXPECT_TRUE(probe->is_probe);
    EXPECT_FALSE(breaker_.Ask()) << "one at a time";
    breaker_.Failed(*probe, absl::UnavailableError("still away"));
    pause = std::min(2 * pause, CircuitBreaker::kLongestPause);
  }
  EXPECT_EQ(pause, CircuitBreaker::kLongestPause);
  EXPECT_EQ(breaker_.openings().value(), 1U);
}

TEST_F(CircuitBreakerTest, AnAnswerClosesItAndTheNextPauseIsShortAgain) {
  Open();
  for (Duration pause : {CircuitBreaker::kFirstPause, 2 * CircuitBreaker::kFirstPause}) {
    env_.AdvanceClock(pause);
    const auto probe = breaker_.Ask().value();
    if (pause == CircuitBreaker::kFirstPause) {
      breaker_.Failed(probe, absl::UnavailableError("still away"));
    } else {
      breaker_.Answered(probe);
    }
  }
  EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::ANSWERS);
  EXPECT_FALSE(breaker_.Ask().value().is_probe);
  Open();
  EXPECT_EQ(breaker_.openings().value(), 2U);
  env_.AdvanceClock(CircuitBreaker::kFirstPause);
  EXPECT_TRUE(breaker_.Ask());
}

TEST_F(CircuitBreakerTest, AnAbandonedProbeLeavesItsPlaceToAnother) {
  Open();
  env_.AdvanceClock(CircuitBreaker::kFirstPause);
  breaker_.Abandoned(breaker_.Ask().value());
  EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::BROKEN);
  EXPECT_TRUE(breaker_.Ask());
}

TEST_F(CircuitBreakerTest, ALateAnswerOfACallFromBeforeClosesIt) {
  const auto early = breaker_.Ask().value();
  Open();
  env_.AdvanceClock(CircuitBreaker::kFirstPause);
  const auto probe = breaker_.Ask().value();
  breaker_.Answered(early);
  EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::ANSWERS);
  breaker_.Failed(probe, absl::UnavailableError("away"));
  EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::ANSWERS) << "one failure does not open it";
}

// The engine answers the first call of each query.
TEST_F(CircuitBreakerTest, QueriesThatEndByTheirDeadlineOpenIt) {
  const auto query = [&] {
    const auto permit = breaker_.Ask();
    ASSERT_TRUE(permit);
    breaker_.Answered(*permit);
    breaker_.QueryWasLate(absl::DeadlineExceededError("too slow"));
  };
  for (int i = 1; i < CircuitBreaker::kFailuresToOpen; ++i) query();
  breaker_.QueryFound();
  for (int i = 1; i < CircuitBreaker::kFailuresToOpen; ++i) query();
  EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::ANSWERS);
  query();
  EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::BROKEN);
  EXPECT_EQ(breaker_.state().last_error, "too slow");

  Duration pause = CircuitBreaker::kFirstPause;
  for (int probes = 0; probes < 10; ++probes) {
    env_.AdvanceClock(pause - Duration(1));
    EXPECT_FALSE(breaker_.Ask()) << probes;
    env_.AdvanceClock(Duration(1));
    query();
    EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::BROKEN) << "one is enough now";
    pause = std::min(2 * pause, CircuitBreaker::kLongestPause);
  }
  env_.AdvanceClock(pause);
  breaker_.Answered(breaker_.Ask().value());
  breaker_.QueryFound();
  for (int i = 1; i < CircuitBreaker::kFailuresToOpen; ++i) query();
  EXPECT_EQ(breaker_.state().health, v1::UpstreamStatus::ANSWERS);
  query();
  env_.AdvanceClock(CircuitBreaker::kFirstPause);
  EXPECT_TRUE(breaker_.Ask()) << "the pause is short again";
}

}  // namespace
}  // namespace kernix::remote
