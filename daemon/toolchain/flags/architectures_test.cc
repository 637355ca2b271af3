// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "daemon/toolchain/flags/flags.h"

namespace kernix::toolchain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ArchitecturesTest : public ::testing::Test {
 protected:
  ArchitecturesTest() {
    cuda_.version = "13.0";
    cuda_.architectures = {75, 80, 86, 90, 100, 120};
  }
  CudaToolkit cuda_;
};

TEST_F(ArchitecturesTest, AllSpellingsSortedWithoutDoubles) {
  const auto checked =
      CheckArchitectures(cuda_, {"sm_120", "8.6", "86", "compute_75", "12.0", "sm_90", "sm_90a", "10.0"});
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_THAT(*checked, ElementsAre("sm_75", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_120"));
}

TEST_F(ArchitecturesTest, AGpuHasTheMostSpecificTargetOfTheToolkit) {
  const std::vector<std::string> gpus = {"sm_75", "sm_86", "sm_90", "sm_100", "sm_120"};
  cuda_.major_version = 13;
  EXPECT_THAT(*CheckArchitectures(cuda_, gpus, /*of_gpu=*/true),
              ElementsAre("sm_75", "sm_86", "sm_90a", "sm_100a", "sm_120f"));
  cuda_.major_version = 12;
  cuda_.minor_version = 9;
  EXPECT_THAT(*CheckArchitectures(cuda_, {"sm_120"}, /*of_gpu=*/true), ElementsAre("sm_120f"));
  cuda_.minor_version = 8;
  EXPECT_THAT(*CheckArchitectures(cuda_, {"sm_120"}, /*of_gpu=*/true), ElementsAre("sm_120a"));
  EXPECT_THAT(*CheckArchitectures(cuda_, gpus), ElementsAre("sm_75", "sm_86", "sm_90", "sm_100", "sm_120"));
}

TEST_F(ArchitecturesTest, WordsOfNvccStandForMany) {
  EXPECT_THAT(*CheckArchitectures(cuda_, {"all"}), ElementsAre("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"));
  EXPECT_THAT(*CheckArchitectures(cuda_, {"all-major", "sm_90a"}),
              ElementsAre("sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"));
}

TEST_F(ArchitecturesTest, WhatIsNoArchitectureIsRefused) {
  for (const char* text :
       {"", "sm_", "native", "8", "8.66", "sm_9x", "-90", "sm_90ab", "99999", "8.", ".6", "sm_ 90"}) {
    const auto checked = CheckArchitectures(cuda_, {"sm_80", text});
    EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::INVALID_REQUEST) << text;
  }
  EXPECT_EQ(KindOf(CheckArchitectures(cuda_, {}).status()), v1::ErrorDetail::INVALID_REQUEST);
}

TEST_F(ArchitecturesTest, WhatThisToolkitDoesNotKnowIsAToolchainErrorThatNamesWhatItKnows) {
  const auto checked = CheckArchitectures(cuda_, {"sm_70"});
  EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(std::string(checked.status().message()), HasSubstr("sm_75, sm_80, sm_86, sm_90, sm_100, sm_120"));
}

}  // namespace
}  // namespace kernix::toolchain
