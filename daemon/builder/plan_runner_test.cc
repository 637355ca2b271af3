// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/plan_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <new>
#include <optional>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/os/fault_env.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Runs nothing by itself: the test says when and how a step ends.
class ManualExecutor : public exec::Executor {
 public:
  struct Submitted {
    exec::Action action;
    exec::ActionObserver* observer;
    CancellationPtr cancellation;
    exec::ActionDone done;
  };

  void Submit(exec::Action action, exec::AskersPtr, exec::ActionObserver* observer, CancellationPtr cancellation,
              exec::ActionDone done) override {
    if (action.step == no_memory_for) throw std::bad_alloc();
    submitted_.push_back({std::move(action), observer, std::move(cancellation), std::move(done)});
  }
  exec::ExecutorLoad load() const override { return {}; }

  std::string no_memory_for;  // a step

  std::vector<std::string> Waiting() const {
    std::vector<std::string> steps;
    for (const Submitted& submitted : submitted_) steps.push_back(submitted.action.step);
    return steps;
  }

  Submitted Take(const std::string& step) {
    for (auto it = submitted_.begin(); it != submitted_.end(); ++it) {
      if (it->action.step != step) continue;
      Submitted taken = std::move(*it);
      submitted_.erase(it);
      return taken;
    }
    ADD_FAILURE() << step << " was not submitted";
    return {};
  }

  // Ends a step successfully: each output holds the step's name and the content of its inputs.
  void Finish(const std::string& step, const std::string& printed = "") {
    Submitted taken = Take(step);
    exec::ActionResult result;
    result.output = printed;
    for (const std::string& path : taken.action.outputs) {
      std::string text = step;
      for (const exec::InputFile& input : taken.action.inputs) StrAppend(&text, " ", *input.content);
      result.outputs[path] = exec::MakeContent(text);
    }
    taken.done(std::move(result));
  }

  void Fail(const std::string& step, int exit_code) {
    exec::ActionResult result;
    result.exit_code = exit_code;
    result.output = StrCat(step, ".cc:1: error: no\n");
    Take(step).done(std::move(result));
  }

 private:
  std::deque<Submitted> submitted_;
};

class NullObserver : public PlanObserver {
 public:
  void OnQueued(const std::string&, int) override {}
  void OnStarted(const exec::Action& action) override { started.push_back(action.step); }
  void OnOutput(std::string_view text) override { shown.emplace_back(text); }
  void OnStepDone(int steps_done) override { done = steps_done; }

  std::vector<std::string> started;
  std::vector<std::string> shown;
  int done = 0;
};

Step MakeStep(const std::string& name, std::vector<std::string> needs) {
  Step step;
  step.action.step = name;
  step.action.argv = {"/bin/" + name};
  step.action.outputs = {name + ".out"};
  step.inputs_from_steps = std::move(needs);
  return step;
}

//  a -> b -> d
//  a -> c -> d
Plan Diamond() {
  Plan plan;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {"a.out"}), MakeStep("c", {"a.out"}),
                MakeStep("d", {"b.out", "c.out"})};
  return plan;
}

class PlanRunnerTest : public ::testing::Test {
 protected:
  void Start(Plan plan, size_t max_parallel = 0) {
    askers_->Join({.user = UserId{7}, .max_parallel = max_parallel});
    const auto note_end = [this](PlanEnd end) {
      ++ends_;
      result_ = std::move(end);
    };
    RunPlan(std::move(plan), askers_, runner_, cancellation_, observer_, note_end, nullptr, outputs_);
  }

  // For the outputs of the next plan.
  void Hold(uint64_t max_bytes) {
    outputs_ = std::make_shared<HeldOutputs>(env_, HeldOutputsOptions{.scratch_directory = scratch_.path(),
                                                                      .max_bytes = max_bytes,
                                                                      .of_users = quota_,
                                                                      .askers = exec::OneAsker(UserId{7})});
  }

  FaultEnv env_{Env::Posix()};
  const std::shared_ptr<exec::ByteQuota> quota_ = std::make_shared<exec::ByteQuota>(3 * 4096);
  HeldOutputsPtr outputs_;
  const exec::AskersPtr askers_ = std::make_shared<exec::Askers>();
  ManualExecutor executor_;
  const ScratchDirectory scratch_;
  toolchain::FileDigests digests_{Env::Posix()};
  StepCache cache_{Env::Posix(), digests_, scratch_ / "steps", 1 << 20};
  StepRunner runner_{Env::Posix(), executor_, cache_};
  CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  NullObserver observer_;
  int ends_ = 0;
  std::optional<PlanEnd> result_;
};

TEST_F(PlanRunnerTest, WhatAllStepsMakeTogetherIsBounded) {
  Plan plan;
  plan.steps = {MakeStep("one", {}), MakeStep("two", {}),
                MakeStep("more", {})};  // each makes an output with its own name
  Hold(6);
  Start(plan);
  executor_.Finish("one");
  executor_.Finish("two");
  EXPECT_EQ(observer_.done, 2);
  executor_.Finish("more");
  ASSERT_EQ(ends_, 1);
  EXPECT_EQ(KindOf(result_->status), v1::ErrorDetail::RESOURCE);

  result_.reset();
  Hold(10);
  Start(plan);
  for (const char* step : {"one", "two", "more"}) executor_.Finish(step);
  EXPECT_TRUE(result_->status.ok());
}

TEST_F(PlanRunnerTest, WhatAllPlansOfAUserMakeIsBounded) {
  Plan plan;
  plan.steps = {MakeStep("more", {}), MakeStep("other", {}), MakeStep("third", {})};
  Hold(0);
  Start(plan);
  for (const char* step : {"more", "other", "third"}) executor_.Finish(step);
  ASSERT_TRUE(result_->status.ok());
  const std::optional<PlanEnd> first = std::exchange(result_, std::nullopt);
  Hold(0);
  Start(plan);
  for (const char* step : {"more", "other", "third"}) executor_.Finish(step);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(KindOf(result_->status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(result_->status.message()), HasSubstr("unfinished loads have more than 12288 bytes"));
  EXPECT_EQ(*first->outputs.at("other.out"), "other");
}

TEST_F(PlanRunnerTest, AFullDiskIsAFailure) {
  env_.Inject(NoSpace(Operation::kMakeScratchFile, scratch_.path()));
  Hold(0);
  Plan plan;
  plan.steps = {MakeStep("one", {})};
  Start(plan);
  executor_.Finish("one");
  EXPECT_EQ(KindOf(result_->status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(result_->status.message()), HasSubstr("cannot set aside what a step has made"));
}

TEST_F(PlanRunnerTest, WhatStepsPrintIsInThePlansOrder) {
  Plan plan;
  plan.steps = {MakeStep("one", {}), MakeStep("two", {})};
  Start(std::move(plan));
  executor_.Finish("two", "second\n");
  executor_.Finish("one", "first\n");
  ASSERT_EQ(ends_, 1);
  EXPECT_EQ(result_->printed, "first\nsecond\n");
}

TEST_F(PlanRunnerTest, RunsEachStepAsSoonAsItsInputsAreThere) {
  Start(Diamond());
  EXPECT_THAT(executor_.Waiting(), ElementsAre("a"));
  executor_.Finish("a");
  EXPECT_THAT(executor_.Waiting(), UnorderedElementsAre("b", "c"));
  executor_.Finish("c");
  EXPECT_THAT(executor_.Waiting(), ElementsAre("b"));
  EXPECT_EQ(ends_, 0);
  executor_.Finish("b");
  executor_.Finish("d");
  ASSERT_EQ(ends_, 1);
  ASSERT_TRUE(result_->status.ok());
  EXPECT_EQ(*result_->outputs.at("d.out"), "d b a c a");
  EXPECT_EQ(result_->outputs.size(), 4u);
  EXPECT_EQ(observer_.done, 4);
}

TEST_F(PlanRunnerTest, WhatACommandPrintsIsAnOutput) {
  Plan plan;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {"a.printed"})};
  plan.steps[0].printed = {"a.printed", "time"};
  Start(std::move(plan));
  executor_.Finish("a", "one\ntime: 3 ms\ntwo");
  EXPECT_THAT(executor_.Waiting(), ElementsAre("b"));
  executor_.Finish("b");
  ASSERT_TRUE(result_->status.ok());
  EXPECT_EQ(*result_->outputs.at("a.printed"), "one\ntwo");
}

TEST_F(PlanRunnerTest, KeepsToItsShareOfTheExecutor) {
  Start(Diamond(), /*max_parallel=*/1);
  executor_.Finish("a");
  EXPECT_EQ(executor_.Waiting().size(), 1u);
  executor_.Finish("b");
  EXPECT_THAT(executor_.Waiting(), ElementsAre("c"));
}

TEST_F(PlanRunnerTest, WhoJoinsMayWantMoreOfTheExecutor) {
  Start(Diamond(), /*max_parallel=*/1);
  askers_->Join({.user = UserId{8}, .max_parallel = 2});
  executor_.Finish("a");
  EXPECT_THAT(executor_.Waiting(), ElementsAre("b", "c"));
}

TEST_F(PlanRunnerTest, AFailureCancelsTheRestAndIsToldOnceAllHasEnded) {
  Start(Diamond());
  executor_.Finish("a");
  executor_.Fail("b", 1);
  EXPECT_EQ(ends_, 0);
  ManualExecutor::Submitted c = executor_.Take("c");
  EXPECT_TRUE(c.cancellation->cancelled());
  EXPECT_FALSE(cancellation_->cancelled());
  c.done(MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
  ASSERT_EQ(ends_, 1);
  EXPECT_EQ(KindOf(result_->status), v1::ErrorDetail::COMPILATION);
  EXPECT_EQ(GetErrorDetail(result_->status).message(), "b failed: b.cc:1: error: no");
  EXPECT_EQ(result_->failed->action.step, "b");
  EXPECT_EQ(result_->failed->action.inputs.size(), 1u) << "as it ran";
  EXPECT_THAT(executor_.Waiting(), IsEmpty());
}

TEST_F(PlanRunnerTest, AnErrorOfTheExecutorIsPassedOn) {
  Start(Diamond());
  executor_.Take("a").done(MakeError(v1::ErrorDetail::RESOURCE, "no time left"));
  ASSERT_EQ(ends_, 1);
  EXPECT_EQ(KindOf(result_->status), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(result_->failed, nullptr) << "no command said no";
}

TEST_F(PlanRunnerTest, AStepThatCannotBeSubmittedIsAFailureLikeOthers) {
  executor_.no_memory_for = "c";
  Start(Diamond());
  executor_.Finish("a");
  EXPECT_EQ(ends_, 0);
  ManualExecutor::Submitted b = executor_.Take("b");
  EXPECT_TRUE(b.cancellation->cancelled());
  b.done(MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
  ASSERT_EQ(ends_, 1);
  EXPECT_EQ(KindOf(result_->status), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(result_->failed, nullptr);
}

TEST_F(PlanRunnerTest, StopsWhenItIsAskedTo) {
  Start(Diamond());
  ManualExecutor::Submitted a = executor_.Take("a");
  EXPECT_FALSE(a.cancellation->cancelled());
  cancellation_->Cancel();
  EXPECT_TRUE(a.cancellation->cancelled());
  a.done(MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
  EXPECT_EQ(KindOf(result_->status), v1::ErrorDetail::CANCELLED);
}

TEST_F(PlanRunnerTest, AFailureHasOutputsButNotWhatWasPrinted) {
  Plan plan;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {"a.out"}), MakeStep("c", {"b.out"})};
  Start(std::move(plan));
  executor_.Finish("a", "one\n");
  executor_.Finish("b", "two\n");
  executor_.Fail("c", 1);
  EXPECT_EQ(result_->printed, "");
  EXPECT_TRUE(result_->has_printed);
  EXPECT_EQ(result_->outputs.size(), 2u);
}

TEST_F(PlanRunnerTest, OutputNamesTheToolchainByItsOwnPathsHoweverItComes) {
  Plan plan;
  plan.steps = {MakeStep("a", {})};
  plan.steps[0].action.links = {{"toolchain/cuda", "/opt/cuda"}};
  Start(std::move(plan));
  ManualExecutor::Submitted a = executor_.Take("a");
  for (const char* piece : {"toolch", "ain/cuda/x.h(3): error\ninc/0/", "toolchain/cuda/y.h(1)", ": note"}) {
    a.observer->OnOutput(piece);
  }
  EXPECT_THAT(observer_.shown, ElementsAre("/opt/cuda/x.h(3): error\n"));
  exec::ActionResult result;
  result.outputs["a.out"] = exec::MakeContent("made");
  a.done(std::move(result));
  EXPECT_THAT(observer_.shown, ElementsAre("/opt/cuda/x.h(3): error\n", "inc/0/toolchain/cuda/y.h(1): note"));
}

TEST_F(PlanRunnerTest, AStepThatCanNeverRunIsAnErrorNotAHang) {
  Plan plan;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {"nobody.out"})};
  Start(std::move(plan));
  executor_.Finish("a");
  ASSERT_EQ(ends_, 1);
  EXPECT_EQ(KindOf(result_->status), v1::ErrorDetail::INTERNAL);
}

// Ends every step before Submit() returns, as the inline executor does.
class InstantExecutor : public exec::Executor {
 public:
  void Submit(exec::Action action, exec::AskersPtr, exec::ActionObserver* observer, CancellationPtr,
              exec::ActionDone done) override {
    observer->OnStarted(action);
    exec::ActionResult result;
    for (const std::string& path : action.outputs) result.outputs[path] = exec::MakeContent("x");
    done(std::move(result));
  }
  exec::ExecutorLoad load() const override { return {}; }
};

TEST_F(PlanRunnerTest, WorksOnAnExecutorThatRunsInTheCallersThread) {
  InstantExecutor instant;
  StepRunner runner(Env::Posix(), instant, cache_);
  RunPlan(Diamond(), exec::OneAsker(UserId{7}), runner, cancellation_, observer_, [this](PlanEnd end) {
    ++ends_;
    result_ = std::move(end);
  });
  ASSERT_EQ(ends_, 1);
  EXPECT_TRUE(result_->status.ok());
  EXPECT_THAT(observer_.started, ElementsAre("a", "b", "c", "d"));
}

}  // namespace
}  // namespace kernix::build
