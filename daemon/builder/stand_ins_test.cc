// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/stand_ins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using language::RuntimePart;
using language::RuntimeParts;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Step Preprocess(const std::string& name, const std::vector<std::string>& words) {
  Step step;
  step.action.argv = {"g++", "-E", "-Itoolchain/cuda/include", "u.cu", "-o", name, "-MD", "-MF", name + ".d"};
  step.action.argv.insert(step.action.argv.end(), words.begin(), words.end());
  step.action.inputs = {exec::MakeInput("u.cu", "text")};
  step.action.outputs = {name, name + ".d"};
  return step;
}

Phases TwoPasses() {
  Phases phases;
  phases.preprocess = {Preprocess("device.ii", {"-D__CUDA_ARCH__=900"}), Preprocess("host.ii", {})};
  phases.host_pass = 1;
  phases.unit = "u.cu";
  phases.toolkit_headers = "-Itoolchain/cuda/include";
  return phases;
}

class StandInsTest : public ::testing::Test {
 protected:
  // A lesson about one pass, which differs from others in what the stand-in reads.
  void Teach(size_t pass, RuntimeParts parts, const std::string& read) {
    const RuntimeLesson lesson = LessonOf(ProbesFor(phases_, pass, parts));
    exec::ActionResult result;
    result.outputs[lesson.names] = exec::MakeContent(language::RuntimeNames().ToText());
    result.outputs[lesson.slim_files] = exec::MakeContent(StrCat("cuda_runtime.h: ", read, "\n"));
    result.outputs[lesson.files] = exec::MakeContent("cuda_runtime.h:\n");
    cache_.Keep(StepCache::KeyOf(lesson.step, toolchain_), lesson.step, toolchain_, cache_.Now(), result);
  }
  KnownRuntimePtr Find(RuntimeParts parts = {}) { return stand_ins_.Find(phases_, parts, toolchain_); }

  const ScratchDirectory scratch_;
  const Phases phases_ = TwoPasses();
  toolchain::Toolchain toolchain_;
  toolchain::FileDigests digests_{Env::Posix()};
  StepCache cache_{Env::Posix(), digests_, scratch_ / "steps", 1 << 20};
  Learning learning_{nullptr};
  StandIns stand_ins_{Env::Posix(), cache_, learning_};
};

TEST_F(StandInsTest, LessonsAreReadOnceUntilTheySaySomethingElse) {
  EXPECT_THAT(Find()->passes, IsEmpty());
  Teach(0, {}, "a.h");
  const KnownRuntimePtr known = Find();
  EXPECT_THAT(known->passes, ElementsAre(0));
  EXPECT_THAT(known->slim_files, ElementsAre("a.h"));
  EXPECT_EQ(Find(), known);
  Teach(0, {}, "b.h");
  EXPECT_THAT(Find()->slim_files, ElementsAre("b.h"));
}

TEST_F(StandInsTest, ALessonIsAboutOnePass) {
  Teach(0, {}, "a.h");
  Teach(1, RuntimePart::kMaths, "a.h");
  EXPECT_THAT(Find()->passes, ElementsAre(0));
  EXPECT_THAT(Find(RuntimePart::kMaths)->passes, ElementsAre(1));
}

}  // namespace
}  // namespace kernix::build
