// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/strings.h"
#include "common/os/spawner.h"
#include "tests/support/need_right.h"
#include "tests/support/test_util.h"

namespace kernix::exec {
namespace {

using spawn::Rung;
using spawn::Spawner;
using ::testing::AllOf;
using ::testing::HasSubstr;

// For a private daemon and a shared one.
class SandboxTest : public testing::TestWithParam<bool> {
 protected:
  ~SandboxTest() override {
    Spawner::Get().SetFloor(Rung::kNone, false);
    Spawner::Get().SetProgram(KERNIX_SPAWN_PROGRAM);
  }

  // From now on, kernix-spawn runs as on a machine that lacks this.
  void TakeAway(const std::string& lack) {
    const std::string script = StrCat("#!/bin/sh\nexec ", LESSER_KERNEL_PROGRAM, " ", lack, " ", KERNIX_SPAWN_PROGRAM);
    ASSERT_THAT(Env::Posix().WriteFile(folder_ / "kernix-spawn", script, 0755), IsOk());
    Spawner::Get().SetProgram(folder_ / "kernix-spawn");
  }

  static Sandbox Find(SandboxChoice choice = SandboxChoice::kBest) {
    return FindSandbox(Env::Posix(), choice, GetParam());
  }

  ScratchDirectory folder_;
};

INSTANTIATE_TEST_SUITE_P(Daemons, SandboxTest, testing::Bool());

TEST_P(SandboxTest, TheWallIsBest) {
  const Sandbox found = Find();
  KERNIX_NEED_RIGHT(found.rung == Rung::kWall, "there is no wall here: " + found.lack);
  EXPECT_EQ(found.lack, "");
}

TEST_P(SandboxTest, WithoutUserNamespacesLandlockIsLeft) {
  KERNIX_NEED_RIGHT(Find(SandboxChoice::kLandlock).rung == Rung::kLandlock, "there is no Landlock here");
  TakeAway("namespaces");
  const Sandbox found = Find();
  EXPECT_EQ(found.rung, Rung::kLandlock);
  EXPECT_THAT(found.lack, AllOf(HasSubstr("no wall of namespaces"), HasSubstr("Operation not permitted"),
                                HasSubstr("docs/operations.md")));
}

TEST_P(SandboxTest, WithoutLandlockTheWallStands) {
  KERNIX_NEED_RIGHT(Find().rung == Rung::kWall, "there is no wall here");
  TakeAway("landlock");
  EXPECT_EQ(Find().rung, Rung::kWall);
}

TEST_P(SandboxTest, WithoutBothNothingIsLeft) {
  TakeAway("namespaces,landlock");
  const Sandbox found = Find();
  EXPECT_EQ(found.rung, Rung::kNone);
  EXPECT_THAT(found.lack, AllOf(HasSubstr("no wall of namespaces"), HasSubstr("no Landlock")));
}

TEST_P(SandboxTest, NothingRunsBelowTheFloor) {
  const Sandbox found = Find();
  KERNIX_NEED_RIGHT(found.rung != Rung::kNone, "there is nothing here: " + found.lack);
  Spawner::Get().SetFloor(found.rung, GetParam());
  const ProcessSpec spec{.argv = {"/bin/bash", "-c", StrCat("echo planted > ", folder_ / "planted")},
                         .environment = {}};
  EXPECT_THAT(Env::Posix().RunProcess(spec, nullptr, nullptr), IsOk());
  EXPECT_THAT(Env::Posix().Stat(folder_ / "planted"), HasError(absl::StatusCode::kNotFound, HasSubstr("planted")));
  Spawner::Get().SetFloor(Rung::kNone, false);
  EXPECT_THAT(Env::Posix().RunProcess(spec, nullptr, nullptr), IsOk());
  EXPECT_THAT(Env::Posix().Stat(folder_ / "planted"), IsOk());
}

}  // namespace
}  // namespace kernix::exec
