// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/askers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::exec {
namespace {

using testing::ElementsAre;

constexpr UserId kAnna{1};
constexpr UserId kBob{2};

TEST(AskersTest, EachUserHasTheBestPosition) {
  Askers askers({.user = kBob, .is_of_batch = true});
  EXPECT_THAT(askers.Positions(5, 9), ElementsAre(QueuePosition{kBob, 9}));
  askers.Join({.user = kAnna, .is_of_batch = true});
  askers.Join({.user = kBob});
  EXPECT_THAT(askers.Positions(5, 9), ElementsAre(QueuePosition{kAnna, 9}, QueuePosition{kBob, 5}));
  askers.Leave({.user = kBob});
  EXPECT_THAT(askers.Positions(5, 9), ElementsAre(QueuePosition{kAnna, 9}, QueuePosition{kBob, 9}));
}

TEST(AskersTest, TheLastOneKeepsThePositionUntilAnotherComes) {
  Askers askers;
  EXPECT_TRUE(askers.empty());
  askers.Join({.user = kAnna});
  EXPECT_FALSE(askers.empty());
  askers.Leave({.user = kAnna});
  EXPECT_TRUE(askers.empty());
  EXPECT_THAT(askers.Positions(5, 9), ElementsAre(QueuePosition{kAnna, 5}));
  askers.Join({.user = kBob});
  EXPECT_FALSE(askers.empty());
  EXPECT_THAT(askers.Positions(5, 9), ElementsAre(QueuePosition{kBob, 5}));
}

TEST(AskersTest, TheOneWhoWantsMostAtATimeCounts) {
  Askers askers({.user = kAnna, .max_parallel = 1});
  EXPECT_EQ(askers.max_parallel(), 1u);
  askers.Join({.user = kBob, .max_parallel = 3});
  EXPECT_EQ(askers.max_parallel(), 3u);
  askers.Join({.user = kBob});
  EXPECT_EQ(askers.max_parallel(), 0u);
}

}  // namespace
}  // namespace kernix::exec
