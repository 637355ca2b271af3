// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/idle_monitor.h"

#include <gtest/gtest.h>

namespace kernix::server {
namespace {

class IdleMonitorTest : public testing::Test {
 protected:
  bool StepAfter(Duration pause, const Activity& activity) {
    now_ += pause;
    return monitor_.Step(activity, now_);
  }

  MonotonicTime now_{std::chrono::hours(1)};
  IdleMonitor monitor_{Duration{1000}, now_};
};

TEST_F(IdleMonitorTest, EndsAfterTheTimeout) {
  EXPECT_FALSE(StepAfter(Duration{500}, {}));  // the first step: there may have been activity just before
  EXPECT_FALSE(StepAfter(Duration{999}, {}));
  EXPECT_TRUE(StepAfter(Duration{1}, {}));
}

TEST_F(IdleMonitorTest, NeverWhileSomethingRuns) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(StepAfter(Duration{5000}, {.running = 1}));
}

TEST_F(IdleMonitorTest, TheTimeBeginsWhenTheLastOneLeft) {
  EXPECT_FALSE(StepAfter(Duration{0}, {.running = 1}));
  EXPECT_FALSE(StepAfter(Duration{5000}, {}));  // the client may have left at any time until now
  EXPECT_FALSE(StepAfter(Duration{999}, {}));
  EXPECT_TRUE(StepAfter(Duration{1}, {}));
}

TEST_F(IdleMonitorTest, SeesWhatCameAndWentBetweenTwoLooks) {
  EXPECT_FALSE(StepAfter(Duration{0}, {}));
  EXPECT_FALSE(StepAfter(Duration{900}, {.running = 0, .started = 1}));
  EXPECT_FALSE(StepAfter(Duration{900}, {.running = 0, .started = 1}));
  EXPECT_FALSE(StepAfter(Duration{900}, {.running = 0, .started = 1}));
  EXPECT_TRUE(StepAfter(Duration{100}, {.running = 0, .started = 1}));
}

TEST_F(IdleMonitorTest, PausesUntilTheTimeoutAndNoLonger) {
  StepAfter(Duration{0}, {});
  StepAfter(Duration{0}, {});
  EXPECT_EQ(monitor_.Pause(now_ + Duration{400}), Duration{600});
  EXPECT_TRUE(StepAfter(monitor_.Pause(now_), {}));
}

TEST(IdleMonitor, WithoutTimeoutItIsNeverIdle) {
  const MonotonicTime start;
  IdleMonitor monitor(Duration{0}, start);
  EXPECT_FALSE(monitor.Step({}, start));
  EXPECT_FALSE(monitor.Step({}, start + std::chrono::hours(1000)));
}

}  // namespace
}  // namespace kernix::server
