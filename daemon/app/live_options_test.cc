// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/live_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using ::testing::ElementsAre;

// What applies them may wait for compilers. The daemon's main loop, which asks for them, must not wait as well.
TEST(LiveOptionsTest, CanBeAskedForWhileTheyAreApplied) {
  LiveOptions live({}, [] {
    ServerOptions fresh;
    fresh.idle_timeout = Duration{5};
    return fresh;
  });
  Duration during{};
  const auto report = live.Reload([&](const ServerOptions&) { during = live.Latest().idle_timeout; });
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->applied(), ElementsAre("idle_timeout"));
  EXPECT_EQ(during, ServerOptions().idle_timeout);
  EXPECT_EQ(live.Latest().idle_timeout, Duration{5});
}

}  // namespace
}  // namespace kernix::server
