// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DryRunTest, CommandsAreWordsAsAShellWouldMakeThem) {
  const auto dry_run = ReadDryRun(
      "#$ _SPACE_= \n"
      "#$ PATH=cuda/bin/../nvvm/bin:cuda/bin:/usr/bin\n"
      "#$ CICC_PATH=cuda/bin/../nvvm/bin\n"
      "#$ CUDAFE_FLAGS=\n"
      "#$ g++ -E  -DX=1 \"-Icuda/include\" -include \"cuda_runtime.h\" \"unit.cu\" -o \"keep/unit.ii\" \n"
      "#$ -- Filter Dependencies -- > unit.d\n"
      "#$ \"$CICC_PATH/cicc\" -arch compute_90  \"keep/unit.ii\"\n"
      "#$ fatbinary --create=\"keep/unit.fatbin\" --cicc-cmdline=\"-ftz=0 -fmad=1 \" \"\"\n");
  ASSERT_TRUE(dry_run.has_value());
  EXPECT_EQ(dry_run->path, "cuda/bin/../nvvm/bin:cuda/bin:/usr/bin");
  EXPECT_THAT(dry_run->commands,
              ElementsAre(ElementsAre("g++", "-E", "-DX=1", "-Icuda/include", "-include", "cuda_runtime.h", "unit.cu",
                                      "-o", "keep/unit.ii"),
                          ElementsAre("cuda/bin/../nvvm/bin/cicc", "-arch", "compute_90", "keep/unit.ii"),
                          ElementsAre("fatbinary", "--create=keep/unit.fatbin", "--cicc-cmdline=-ftz=0 -fmad=1 ", "")));
}

TEST(DryRunTest, NoOutputHasNoCommands) {
  const auto dry_run = ReadDryRun("");
  ASSERT_TRUE(dry_run.has_value());
  EXPECT_THAT(dry_run->commands, IsEmpty());
}

// Each of these would be something else to a shell.
TEST(DryRunTest, LinesThatAreNotUnderstoodSaySo) {
  for (const char* line : {"nvcc warning : something is deprecated", "#$ g++ -E > out", "#$ g++ $UNKNOWN",
                           "#$ g++ `date`", "#$ g++ \"open", "#$ rm a; rm b", "#$ a | b", "#$ g++ 'x y'",
                           "#$ g++ a\\ b", "#$ (g++)", "#$ g++ *.cu", "#$ ", "#$", "$ g++"}) {
    EXPECT_FALSE(ReadDryRun(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace kernix::build
