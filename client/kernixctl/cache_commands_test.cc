// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/cache_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMetrics[] =
    "# HELP kernix_load_seconds How long loads took.\n"
    "# TYPE kernix_load_seconds histogram\n"
    "kernix_load_seconds_bucket{outcome=\"hit\",le=\"0.1\"} 1\n"
    "kernix_load_seconds_sum{outcome=\"hit\"} 0.002\n"
    "kernix_load_seconds_count{outcome=\"hit\"} 1\n"
    "kernix_load_seconds_sum{outcome=\"built\"} 1.5\n"
    "kernix_load_seconds_count{outcome=\"built\"} 3\n"
    "kernix_quick_lookup_seconds_sum{outcome=\"hit\"} 0.001\n"
    "kernix_quick_lookup_seconds_count{outcome=\"hit\"} 2\n";

constexpr char kEngine[] =
    "kernix_load_seconds_sum{outcome=\"upstream\"} 0.008\n"
    "kernix_load_seconds_count{outcome=\"upstream\"} 1\n"
    "kernix_upstream_bytes_total{direction=\"received\"} 2048\n"
    "kernix_upstream_calls_total{call=\"read\",outcome=\"failed\"} 1\n"
    "kernix_upstream_calls_total{call=\"write\",outcome=\"failed\"} 2\n"
    "kernix_upstream_calls_total{call=\"write\",outcome=\"refused\"} 4\n"
    "kernix_upstream_retries_total 5\n"
    "kernix_upstream_seconds_sum{call=\"read\"} 0.03\n"
    "kernix_upstream_seconds_count{call=\"read\"} 2\n"
    "kernix_upstream_seconds_sum{call=\"write\"} 0.03\n"
    "kernix_upstream_seconds_count{call=\"write\"} 4";

TEST(TiersTest, QuickLookupsAreOfTheStore) {
  const std::string text = TiersText(kMetrics);
  EXPECT_THAT(text, HasSubstr("store      3      1.0 ms\n"));
  EXPECT_THAT(text, HasSubstr("builds     3      500.0 ms\n"));
  EXPECT_THAT(text, Not(HasSubstr("upstream")));
  EXPECT_EQ(TiersJson(kMetrics).at("tiers"),
            "{\"store\": {\"loads\": 3, \"mean_us\": 1000}, \"upstream\": {\"loads\": 0, \"mean_us\": 0}, "
            "\"builds\": {\"loads\": 3, \"mean_us\": 500000}}");
  EXPECT_FALSE(TiersJson(kMetrics).contains("engine"));
}

TEST(TiersTest, CallsOfAllKindsCountTogether) {
  const std::string text = TiersText(StrCat(kMetrics, kEngine));
  EXPECT_THAT(text, HasSubstr("upstream   1      8.0 ms\n"));
  EXPECT_THAT(text, HasSubstr("6, 10.0 ms each, 3 failed, 5 tries more\n"));
  EXPECT_THAT(text, HasSubstr("4 times, broken 0 times\n"));
  EXPECT_THAT(text, HasSubstr("0 B sent, 2.0 KiB received\n"));
}

}  // namespace

}  // namespace kernix::ctl
