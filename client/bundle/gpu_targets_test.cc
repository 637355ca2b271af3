// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/gpu_targets.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

TEST(GpuTargetsTest, MachineCodeRunsOnItsMajorNumberFromItsMinorOneOn) {
  const GpuTargets targets{.machine_code = {"sm_80", "sm_90"}, .ptx = {}};
  for (const char* gpu : {"sm_80", "sm_86", "sm_89", "sm_90"}) EXPECT_TRUE(RunsOn(targets, gpu)) << gpu;
  for (const char* gpu : {"sm_75", "sm_100", "sm_120"}) EXPECT_FALSE(RunsOn(targets, gpu)) << gpu;
}

TEST(GpuTargetsTest, ALetterBindsToAnArchitectureOrAFamily) {
  EXPECT_TRUE(RunsOn({.machine_code = {"sm_90a"}, .ptx = {"sm_90a"}}, "sm_90"));
  EXPECT_FALSE(RunsOn({.machine_code = {"sm_100a"}, .ptx = {"sm_100a"}}, "sm_103"));
  EXPECT_TRUE(RunsOn({.machine_code = {"sm_100f"}, .ptx = {}}, "sm_103"));
  EXPECT_FALSE(RunsOn({.machine_code = {"sm_100f"}, .ptx = {"sm_100f"}}, "sm_120"));
}

TEST(GpuTargetsTest, ArchitectureOf10Point1IsNoFamilyOf10Point0) {
  EXPECT_FALSE(RunsOn({.machine_code = {"sm_100f"}, .ptx = {}}, "sm_101"));
  EXPECT_FALSE(RunsOn({.machine_code = {"sm_101f"}, .ptx = {}}, "sm_103"));
  EXPECT_TRUE(RunsOn({.machine_code = {"sm_101f"}, .ptx = {}}, "sm_101"));
}

TEST(GpuTargetsTest, PtxNeedsTheDriverOfItsToolkitAndMachineCodeOneOfItsMajorVersion) {
  const GpuTargets targets{.machine_code = {"sm_90"}, .ptx = {"sm_90"}, .cuda_version = 12040};
  EXPECT_EQ(DriverFor(targets, "sm_90"), 12000);
  EXPECT_EQ(DriverFor(targets, "sm_120"), 12040);
  EXPECT_EQ(DriverFor({.machine_code = {"sm_90"}, .ptx = {}}, "sm_90"), 0);
}

TEST(GpuTargetsTest, PtxRunsOnLaterGpus) {
  const GpuTargets targets{.machine_code = {"sm_80", "sm_90"}, .ptx = {"sm_90"}};
  EXPECT_TRUE(RunsOn(targets, "sm_120"));
  EXPECT_FALSE(RunsOn(targets, "sm_75"));
  EXPECT_FALSE(RunsOn({}, "sm_90"));
}

TEST(GpuTargetsTest, TheNearestMachineCodeFitsBest) {
  const GpuTargets ptx_of_80{.machine_code = {"sm_80"}, .ptx = {"sm_80"}};
  const GpuTargets ptx_of_86{.machine_code = {}, .ptx = {"sm_86"}};
  const GpuTargets code_of_90{.machine_code = {"sm_90"}, .ptx = {}};
  const GpuTargets code_of_90a{.machine_code = {"sm_90a"}, .ptx = {}};
  EXPECT_LT(FitFor(ptx_of_80, "sm_90"), FitFor(ptx_of_86, "sm_90"));
  EXPECT_LT(FitFor(ptx_of_86, "sm_90"), FitFor(code_of_90, "sm_90"));
  EXPECT_LT(FitFor(code_of_90, "sm_90"), FitFor(code_of_90a, "sm_90"));
  EXPECT_LT(FitFor({.machine_code = {"sm_80"}, .ptx = {}}, "sm_89"),
            FitFor({.machine_code = {"sm_86"}, .ptx = {}}, "sm_89"));
}

TEST(GpuTargetsTest, WhatIsAskedForIsThereAsItIs) {
  const GpuTargets targets{.machine_code = {"sm_80", "sm_90a"}, .ptx = {"sm_90a"}};
  EXPECT_TRUE(HasEach(targets, {"8.0", "sm_90a"}));
  EXPECT_TRUE(HasEach(targets, {"9.0a"}));
  EXPECT_FALSE(HasEach(targets, {"9.0"}));
  EXPECT_FALSE(HasEach(targets, {"8.0", "8.6"}));
  EXPECT_FALSE(HasEach(targets, {"all-major"}));
}

}  // namespace
}  // namespace kernix
