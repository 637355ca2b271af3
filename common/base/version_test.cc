// SPDX-License-Identifier: Apache-2.0
#include "common/base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix {
namespace {

TEST(VersionTest, IsARelease) { EXPECT_THAT(Version(), testing::ContainsRegex("^[0-9]+\\.[0-9]+\\.[0-9]+$")); }

TEST(VersionTest, BuildIdIsADigest) { EXPECT_THAT(BuildId(), testing::ContainsRegex("^[0-9a-f]{32}$")); }

}  // namespace

}  // namespace kernix
