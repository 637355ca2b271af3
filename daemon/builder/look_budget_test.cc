// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/look_budget.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/mem_env.h"

namespace kernix::build {
namespace {

class LookBudgetTest : public ::testing::Test {
 protected:
  using Look = LookBudget::Look;

  Duration LeftOf(const Look& look) { return std::chrono::duration_cast<Duration>(look.deadline() - env_.Now()); }

  MemEnv env_;
  LookBudget budget_{env_, Duration(10'000)};
};

TEST_F(LookBudgetTest, EachLookHasWhatThoseBeforeItHaveLeft) {
  {
    const Look look(budget_);
    EXPECT_EQ(LeftOf(look), Duration(10'000));
    env_.AdvanceClock(Duration(6'000));
  }
  env_.AdvanceClock(Duration(60'000));  // the load does something else
  {
    const Look look(budget_);
    EXPECT_EQ(LeftOf(look), Duration(4'000));
    EXPECT_FALSE(look.IsOver());
    env_.AdvanceClock(Duration(5'000));
    EXPECT_TRUE(look.IsOver());
  }
  const Look look(budget_);
  EXPECT_TRUE(look.IsOver());
}

TEST_F(LookBudgetTest, LooksAtTheSameTimeSpendItOnce) {
  std::optional<Look> first(std::in_place, budget_);
  env_.AdvanceClock(Duration(2'000));
  std::optional<Look> second(std::in_place, budget_);
  EXPECT_EQ(LeftOf(*second), Duration(8'000)) << "the load has waited for two seconds";
  env_.AdvanceClock(Duration(1'000));
  first.reset();
  EXPECT_EQ(LeftOf(Look(budget_)), Duration(7'000));
  env_.AdvanceClock(Duration(3'000));
  second.reset();
  EXPECT_EQ(LeftOf(Look(budget_)), Duration(4'000));
}

TEST_F(LookBudgetTest, AMomentIsTooLittleToAsk) {
  {
    const Look look(budget_);
    env_.AdvanceClock(Duration(9'995));
  }
  EXPECT_TRUE(Look(budget_).IsOver());
  EXPECT_TRUE(budget_.IsSpent());
}

TEST_F(LookBudgetTest, IsSpentDuringALookAndAfterIt) {
  EXPECT_FALSE(budget_.IsSpent());
  {
    const Look look(budget_);
    env_.AdvanceClock(Duration(9'000));
    EXPECT_FALSE(budget_.IsSpent());
    env_.AdvanceClock(Duration(1'000));
    EXPECT_TRUE(budget_.IsSpent());
  }
  EXPECT_TRUE(budget_.IsSpent());
  budget_.Renew();
  EXPECT_FALSE(budget_.IsSpent());
}

TEST_F(LookBudgetTest, ARenewedOneIsWhole) {
  {
    const Look look(budget_);
    env_.AdvanceClock(Duration(10'000));
  }
  budget_.Renew();
  EXPECT_EQ(LeftOf(Look(budget_)), Duration(10'000));
}

}  // namespace
}  // namespace kernix::build
