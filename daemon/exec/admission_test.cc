// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/admission.h"

#include <gtest/gtest.h>

namespace kernix::exec {
namespace {

TEST(AdmissionTest, LimitsTheNumber) {
  Admission admission(2, 0);
  admission.Start(1);
  EXPECT_TRUE(admission.MayStart(1));
  admission.Start(1);
  EXPECT_FALSE(admission.MayStart(1));
  admission.Finish(1);
  EXPECT_TRUE(admission.MayStart(1));
}

TEST(AdmissionTest, LimitsTheMemory) {
  Admission admission(8, 100);
  admission.Start(60);
  EXPECT_TRUE(admission.MayStart(40));
  EXPECT_FALSE(admission.MayStart(41));
  admission.Finish(60);
  EXPECT_TRUE(admission.MayStart(41));
}

TEST(AdmissionTest, WhatIsLargerThanTheBudgetRunsAlone) {
  Admission admission(8, 100);
  EXPECT_TRUE(admission.MayStart(500));
  admission.Start(500);
  EXPECT_FALSE(admission.MayStart(0));
  EXPECT_FALSE(admission.MayStart(1));
  admission.Finish(500);
  admission.Start(1);
  EXPECT_FALSE(admission.MayStart(500));
}

TEST(AdmissionTest, HugeEstimatesDoNotOverflow) {
  Admission admission(8, 100);
  admission.Start(50);
  EXPECT_FALSE(admission.MayStart(UINT64_MAX));
}

}  // namespace
}  // namespace kernix::exec
