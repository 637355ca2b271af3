// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

// A step that reads "in", a header of the toolchain, and "shown" only to show lines of it.
class StepCacheTest : public ::testing::Test {
 protected:
  StepCacheTest() {
    toolchain_.host.system_include_directories = {scratch_ / "include"};
    EXPECT_TRUE(env_.CreateDirectories(scratch_ / "include").ok());
    SetHeader("#define A 1\n");
  }

  void SetHeader(const std::string& text) {
    ASSERT_TRUE(env_.WriteFile(header_, text, 0644).ok());
    ASSERT_TRUE(env_.SetModificationTime(header_, next_time_++).ok());
  }

  static Step MakeStep(const std::string& in = "in", const std::string& shown = "shown") {
    Step step;
    step.action.step = "step";
    step.action.argv = {"tool"};
    step.action.inputs = {exec::MakeInput("in", in), exec::MakeInput("shown", shown)};
    step.action.outputs = {"out", "d"};
    step.reuse = Reuse{.dependencies = {"d"}, .inputs = {"in"}};
    return step;
  }

  exec::ActionResult Result(const std::string& more_read = "") const {
    exec::ActionResult result;
    result.outputs["out"] = exec::MakeContent("made");
    result.outputs["d"] = exec::MakeContent(StrCat("out: in ", header_, more_read, "\n"));
    return result;
  }

  // As if the step had started long after the header was written.
  void Keep(const Step& step, const exec::ActionResult& result) {
    BuildStart start = cache_.Now();
    start.unix_ms += 10'000;
    cache_.Keep(StepCache::KeyOf(step, toolchain_), step, toolchain_, start, result);
  }
  bool Has(const Step& step) { return cache_.Find(StepCache::KeyOf(step, toolchain_), toolchain_).has_value(); }

  Env& env_ = Env::Posix();
  const ScratchDirectory scratch_;
  const std::string header_ = scratch_ / "include/a.h";
  int64_t next_time_ = 1'000'000'000;
  toolchain::FileDigests digests_{env_};
  toolchain::Toolchain toolchain_;
  StepCache cache_{env_, digests_, scratch_ / "steps", 1 << 20};
};

TEST_F(StepCacheTest, GivesBackWhatAStepOfTheSameInputsHasMade) {
  EXPECT_FALSE(Has(MakeStep()));
  Keep(MakeStep(), Result());
  const auto found = cache_.Find(StepCache::KeyOf(MakeStep(), toolchain_), toolchain_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found->outputs.at("out"), "made");
  EXPECT_EQ(found->exit_code, 0);
  EXPECT_TRUE(Has(MakeStep("in", "other lines to show")));
  EXPECT_FALSE(Has(MakeStep("other input")));
}

TEST_F(StepCacheTest, OfADeviceUnitOnlyTheCodeCounts) {
  const auto unit = [](const std::string& text) {
    Step step = MakeStep(text);
    step.reuse->device_unit = "in";
    return step;
  };
  Keep(unit("int a;\n"), Result());
  EXPECT_TRUE(Has(unit("\n int  a;\n")));
  EXPECT_FALSE(Has(unit("int b;\n")));
  EXPECT_FALSE(Has(MakeStep("int a;\n")));  // of this one, all counts
  Keep(unit("int a = __builtin_LINE();\n"), Result());
  EXPECT_TRUE(Has(unit("int a = __builtin_LINE();\n")));
  EXPECT_FALSE(Has(unit("\nint a = __builtin_LINE();\n")));
}

TEST_F(StepCacheTest, AChangedWordOrToolIsAnotherStep) {
  Keep(MakeStep(), Result());
  Step word = MakeStep();
  word.action.argv.push_back("-O0");
  EXPECT_FALSE(Has(word));
  Step tool = MakeStep();
  tool.action.salt = DigestOf("another compiler");
  EXPECT_FALSE(Has(tool));
}

TEST_F(StepCacheTest, AChangedHeaderOfTheToolchainIsNoticed) {
  Keep(MakeStep(), Result());
  ASSERT_TRUE(Has(MakeStep()));
  SetHeader("#define A 2\n");
  EXPECT_FALSE(Has(MakeStep()));
  SetHeader("#define A 1\n");
  EXPECT_TRUE(Has(MakeStep()));
  ASSERT_TRUE(env_.RemoveFile(header_).ok());
  EXPECT_FALSE(Has(MakeStep()));
}

TEST_F(StepCacheTest, WhatFailedOrSaidSomethingIsNotKept) {
  exec::ActionResult failed = Result();
  failed.exit_code = 1;
  Keep(MakeStep(), failed);
  exec::ActionResult warned = Result();
  warned.output = "warning: x\n";
  Keep(MakeStep(), warned);
  EXPECT_FALSE(Has(MakeStep()));
}

TEST_F(StepCacheTest, WhatAToolThatWasReplacedHasMadeIsNotKept) {
  const std::string tool = scratch_ / "tool";
  ASSERT_THAT(env_.WriteFile(tool, "old", 0755), IsOk());
  ASSERT_THAT(Watch(env_, tool, toolchain_.files), IsOk());
  Keep(MakeStep("before"), Result());
  ASSERT_THAT(env_.WriteFile(tool, "newer", 0755), IsOk());
  Keep(MakeStep("after"), Result());
  EXPECT_TRUE(Has(MakeStep("before")));
  EXPECT_FALSE(Has(MakeStep("after")));
}

// By `.incbin`, for example.
TEST_F(StepCacheTest, AStepThatHasReadMoreIsNotKept) {
  Keep(MakeStep(), Result(" ./shown"));
  EXPECT_FALSE(Has(MakeStep()));
}

TEST_F(StepCacheTest, AToolchainElsewhereIsAskedAnew) {
  Keep(MakeStep(), Result());
  toolchain_.host.system_include_directories = {scratch_ / "moved"};
  EXPECT_FALSE(Has(MakeStep()));
}

}  // namespace
}  // namespace kernix::build
