// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>

#include "daemon/builder/upstream_cache.h"
#include "tests/support/mem_env.h"

namespace kernix::build {
namespace {

class UpstreamBudgetTest : public ::testing::Test {
 protected:
  using Query = UpstreamBudget::Query;

  Duration LeftOf(const Query& query) { return std::chrono::duration_cast<Duration>(query.deadline() - env_.Now()); }

  MemEnv env_;
  UpstreamBudget budget_{env_, Duration(10'000)};
};

TEST_F(UpstreamBudgetTest, EachQueryHasWhatThoseBeforeItHaveLeft) {
  {
    const Query query(budget_);
    EXPECT_EQ(LeftOf(query), Duration(10'000));
    env_.AdvanceClock(Duration(6'000));
  }
  env_.AdvanceClock(Duration(60'000));  // the load does something else
  {
    const Query query(budget_);
    EXPECT_EQ(LeftOf(query), Duration(4'000));
    EXPECT_FALSE(query.IsOver());
    env_.AdvanceClock(Duration(5'000));
    EXPECT_TRUE(query.IsOver());
  }
  const Query query(budget_);
  EXPECT_TRUE(query.IsOver());
}

TEST_F(UpstreamBudgetTest, QueriesAtTheSameTimeSpendItOnce) {
  std::optional<Query> first(std::in_place, budget_);
  env_.AdvanceClock(Duration(2'000));
  std::optional<Query> second(std::in_place, budget_);
  EXPECT_EQ(LeftOf(*second), Duration(8'000)) << "the load has waited for two seconds";
  env_.AdvanceClock(Duration(1'000));
  first.reset();
  EXPECT_EQ(LeftOf(Query(budget_)), Duration(7'000));
  env_.AdvanceClock(Duration(3'000));
  second.reset();
  EXPECT_EQ(LeftOf(Query(budget_)), Duration(4'000));
}

TEST_F(UpstreamBudgetTest, AMomentIsTooLittleToAsk) {
  {
    const Query query(budget_);
    env_.AdvanceClock(Duration(9'995));
  }
  EXPECT_TRUE(Query(budget_).IsOver());
  EXPECT_TRUE(budget_.IsSpent());
}

TEST_F(UpstreamBudgetTest, IsSpentDuringAQueryAndAfterIt) {
  EXPECT_FALSE(budget_.IsSpent());
  {
    const Query query(budget_);
    env_.AdvanceClock(Duration(9'000));
    EXPECT_FALSE(budget_.IsSpent());
    env_.AdvanceClock(Duration(1'000));
    EXPECT_TRUE(budget_.IsSpent());
  }
  EXPECT_TRUE(budget_.IsSpent());
  budget_.Renew();
  EXPECT_FALSE(budget_.IsSpent());
}

TEST_F(UpstreamBudgetTest, ARenewedOneIsWhole) {
  {
    const Query query(budget_);
    env_.AdvanceClock(Duration(10'000));
  }
  budget_.Renew();
  EXPECT_EQ(LeftOf(Query(budget_)), Duration(10'000));
}

}  // namespace
}  // namespace kernix::build
