// SPDX-License-Identifier: Apache-2.0
#include "common/base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_util.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(ParseSize, TakesUnits) {
  EXPECT_EQ(ParseSize("1000000").value(), 1'000'000u);
  EXPECT_EQ(ParseSize("0").value(), 0u);
  EXPECT_EQ(ParseSize("10GiB").value(), 10ull << 30);
  EXPECT_EQ(ParseSize(" 512 MiB ").value(), 512ull << 20);
  EXPECT_EQ(ParseSize("2g").value(), 2ull << 30);
  EXPECT_EQ(ParseSize("3KB").value(), 3000u);
}

TEST(ParseSize, RefusesTheRestWithAnExample) {
  for (const char* text : {"", "GiB", "1.5GiB", "-1", "10 parsecs", "99999999999999999999", "20000000TiB"}) {
    EXPECT_THAT(ParseSize(text), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("such as 10GiB"))) << text;
  }
}

TEST(ParseDuration, TakesUnits) {
  EXPECT_EQ(ParseDuration("250ms").value(), milliseconds(250));
  EXPECT_EQ(ParseDuration("90s").value(), milliseconds(90'000));
  EXPECT_EQ(ParseDuration("10 m").value(), milliseconds(600'000));
  EXPECT_EQ(ParseDuration("2h").value(), milliseconds(7'200'000));
  EXPECT_EQ(ParseDuration("7d").value(), milliseconds(604'800'000));
  EXPECT_EQ(ParseDuration("0").value(), milliseconds(0));
}

TEST(ParseDuration, WantsAUnit) {
  for (const char* text : {"", "10", "s", "1.5s", "-1s", "3 fortnights", "9223372036854775807d"}) {
    EXPECT_THAT(ParseDuration(text), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("such as 250ms"))) << text;
  }
}

}  // namespace
}  // namespace kernix
