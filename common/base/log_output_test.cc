// SPDX-License-Identifier: Apache-2.0
#include "common/base/log_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class LogBudgetTest : public ::testing::Test {
 protected:
  bool Write(std::string_view account, uint64_t bytes) { return budget_.Ask(account, bytes, now_).write; }

  LogBudget budget_{100, seconds(60)};
  LogBudget::Time now_ = LogBudget::Time() + std::chrono::hours(1);
};

TEST_F(LogBudgetTest, AnAccountHasSoManyBytesInAWindow) {
  EXPECT_TRUE(Write("a", 60));
  EXPECT_TRUE(Write("a", 60));  // one line may go beyond
  EXPECT_FALSE(Write("a", 1));
  now_ += seconds(59);
  EXPECT_FALSE(Write("a", 1));
  now_ += seconds(1);
  EXPECT_TRUE(Write("a", 1));
}

TEST_F(LogBudgetTest, NoAccountTakesFromAnother) {
  EXPECT_TRUE(Write("a", 1000));
  EXPECT_FALSE(Write("a", 1));
  EXPECT_TRUE(Write("b", 1));
}

TEST_F(LogBudgetTest, WhatIsLeftOutIsToldOnceByTheNextLine) {
  Write("a", 1000);
  for (int i = 0; i < 3; ++i) Write("a", 1);
  now_ += seconds(60);
  EXPECT_EQ(budget_.Ask("a", 1, now_).left_out, 3u);
  EXPECT_EQ(budget_.Ask("a", 1, now_).left_out, 0u);
}

TEST_F(LogBudgetTest, WhatIsLeftOutOfTheSilentIsToldWhenTheWindowIsOver) {
  Write("a", 1000);
  for (int i = 0; i < 3; ++i) Write("a", 1);
  Write("b", 1);
  EXPECT_THAT(budget_.Settle(now_), IsEmpty());
  EXPECT_FALSE(Write("a", 1));
  now_ += seconds(60);
  EXPECT_THAT(budget_.Settle(now_), ElementsAre(Pair("a", 4)));
  EXPECT_THAT(budget_.Settle(now_), IsEmpty());
  EXPECT_TRUE(Write("a", 1));
}

}  // namespace

}  // namespace kernix
