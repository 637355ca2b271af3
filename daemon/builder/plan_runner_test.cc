// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/plan_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <new>
#include <thread>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "tests/support/await.h"
#include "tests/support/fault_env.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs nothing by itself: the test says when and how a step ends.
class ManualExecutor : public exec::Executor {
 public:
  struct Running {
    exec::Action action;
    exec::ActionObserver* observer = nullptr;
    CancellationPtr cancellation;
    std::promise<exec::ActionEnd> end;
  };
  using RunningPtr = std::shared_ptr<Running>;

  exec::ActionEnd Run(const exec::Action& action, const exec::AskersPtr&, exec::ActionObserver* observer,
                      const CancellationPtr& cancellation) override {
    if (action.step == no_memory_for) throw std::bad_alloc();
    const auto running = std::make_shared<Running>(Running{action, observer, cancellation, {}});
    std::future<exec::ActionEnd> end = running->end.get_future();
    {
      const MutexLock lock(mutex_);
      running_.push_back(running);
      most_at_once_ = std::max(most_at_once_, running_.size());
      changed_.NotifyAll();
    }
    return end.get();
  }
  exec::ExecutorLoad load() const override { return {}; }

  std::string no_memory_for;  // a step

  // Waits until so many run. Their names, sorted.
  std::vector<std::string> Await(size_t count) {
    const MutexLock lock(mutex_);
    AwaitChange(StrCat(count, " steps that run"), changed_, mutex_,
                [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_.size() == count; });
    std::vector<std::string> steps;
    for (const RunningPtr& running : running_) steps.push_back(running->action.step);
    std::sort(steps.begin(), steps.end());
    return steps;
  }

  size_t most_at_once() const {
    const MutexLock lock(mutex_);
    return most_at_once_;
  }

  // Waits until it runs. The caller ends it.
  RunningPtr Take(const std::string& step) {
    const MutexLock lock(mutex_);
    const auto find = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::find_if(running_.begin(), running_.end(),
                          [&](const RunningPtr& running) { return running->action.step == step; });
    };
    AwaitChange(step, changed_, mutex_,
                [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return find() != running_.end(); });
    const auto found = find();
    RunningPtr taken = *found;
    running_.erase(found);
    return taken;
  }

  // Ends a step successfully: each output holds the step's name and the content of its inputs.
  void Finish(const std::string& step, const std::string& printed = "") {
    const RunningPtr taken = Take(step);
    exec::ActionResult result;
    result.output = printed;
    for (const std::string& path : taken->action.outputs) {
      std::string text = step;
      for (const exec::InputFile& input : taken->action.inputs) StrAppend(&text, " ", *input.content);
      result.outputs[path] = exec::MakeContent(text);
    }
    taken->end.set_value(std::move(result));
  }

  void Fail(const std::string& step, int exit_code) {
    exec::ActionResult result;
    result.exit_code = exit_code;
    result.output = StrCat(step, ".cc:1: error: no\n");
    Take(step)->end.set_value(std::move(result));
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<RunningPtr> running_ ABSL_GUARDED_BY(mutex_);
  size_t most_at_once_ ABSL_GUARDED_BY(mutex_) = 0;
};

class NullObserver : public exec::ActionObserver {
 public:
  void OnOutput(std::string_view text) override { shown.emplace_back(text); }
  void OnStepDone(int steps_done) override { done = std::max(done.load(), steps_done); }

  std::vector<std::string> shown;
  std::atomic<int> done = 0;
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
    observer_.done = 0;
    end_ = std::async(std::launch::async, [this, plan = std::move(plan), outputs = outputs_] {
      const auto run_step = [this](const Step& step, const StepRun& run) { return commands_.RunStep(step, run); };
      return RunPlan(plan, run_step,
                     {.askers = askers_, .outputs = outputs, .observer = &observer_, .cancellation = cancellation_});
    });
  }
  PlanEnd End() { return end_.get(); }

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
  CommandRunner commands_{Env::Posix(), executor_, cache_};
  CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  NullObserver observer_;
  std::future<PlanEnd> end_;
};

TEST_F(PlanRunnerTest, WhatAllStepsMakeTogetherIsBounded) {
  Plan plan;
  plan.steps = {MakeStep("one", {}), MakeStep("two", {}),
                MakeStep("more", {})};  // each makes an output with its own name
  Hold(6);
  Start(plan);
  executor_.Finish("one");
  executor_.Finish("two");
  kernix::Await("two steps", [&] { return observer_.done == 2; });
  executor_.Finish("more");
  EXPECT_EQ(KindOf(End().status), v1::ErrorDetail::RESOURCE);

  Hold(10);
  Start(plan);
  for (const char* step : {"one", "two", "more"}) executor_.Finish(step);
  EXPECT_TRUE(End().status.ok());
}

TEST_F(PlanRunnerTest, WhatAllPlansOfAUserMakeIsBounded) {
  Plan plan;
  plan.steps = {MakeStep("more", {}), MakeStep("other", {}), MakeStep("third", {})};
  Hold(0);
  Start(plan);
  for (const char* step : {"more", "other", "third"}) executor_.Finish(step);
  const PlanEnd first = End();
  ASSERT_TRUE(first.status.ok());
  Hold(0);
  Start(plan);
  executor_.Await(3);
  for (const char* step : {"more", "other", "third"}) executor_.Finish(step);
  const PlanEnd second = End();
  EXPECT_EQ(KindOf(second.status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(second.status.message()), HasSubstr("unfinished loads have more than 12288 bytes"));
  EXPECT_EQ(*first.outputs.at("other.out"), "other");
}

TEST_F(PlanRunnerTest, AFullDiskIsAFailure) {
  env_.Inject(NoSpace(Operation::kMakeScratchFile, scratch_.path()));
  Hold(0);
  Plan plan;
  plan.steps = {MakeStep("one", {})};
  Start(plan);
  executor_.Finish("one");
  const PlanEnd end = End();
  EXPECT_EQ(KindOf(end.status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(end.status.message()), HasSubstr("cannot keep the output of a step"));
}

TEST_F(PlanRunnerTest, WhatStepsPrintIsInThePlansOrder) {
  Plan plan;
  plan.steps = {MakeStep("one", {}), MakeStep("two", {})};
  Start(std::move(plan));
  executor_.Finish("two", "second\n");
  executor_.Finish("one", "first\n");
  EXPECT_EQ(End().printed, "first\nsecond\n");
}

TEST_F(PlanRunnerTest, RunsEachStepAsSoonAsItsInputsAreThere) {
  Start(Diamond());
  EXPECT_THAT(executor_.Await(1), ElementsAre("a"));
  executor_.Finish("a");
  EXPECT_THAT(executor_.Await(2), ElementsAre("b", "c"));
  executor_.Finish("c");
  kernix::Await("two steps", [&] { return observer_.done == 2; });
  EXPECT_THAT(executor_.Await(1), ElementsAre("b"));
  executor_.Finish("b");
  executor_.Finish("d");
  const PlanEnd end = End();
  ASSERT_TRUE(end.status.ok());
  EXPECT_EQ(*end.outputs.at("d.out"), "d b a c a");
  EXPECT_EQ(end.outputs.size(), 4u);
  EXPECT_EQ(observer_.done, 4);
}

TEST_F(PlanRunnerTest, RunsManyStepsSideBySideAndMoreAfterThem) {
  constexpr int kSteps = 40;
  Plan plan;
  std::vector<std::string> outputs;
  for (int i = 0; i < kSteps; ++i) {
    plan.steps.push_back(MakeStep(StrCat("s", i), {}));
    outputs.push_back(StrCat("s", i, ".out"));
  }
  plan.steps.push_back(MakeStep("last", outputs));
  Start(std::move(plan));
  EXPECT_EQ(executor_.Await(kSteps).size(), size_t{kSteps});
  for (int i = 0; i < kSteps; ++i) executor_.Finish(StrCat("s", i));
  executor_.Finish("last");
  EXPECT_TRUE(End().status.ok());
}

TEST_F(PlanRunnerTest, WhatACommandPrintsIsAnOutput) {
  Plan plan;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {"a.printed"})};
  plan.steps[0].printed = {"a.printed", "time"};
  Start(std::move(plan));
  executor_.Finish("a", "one\ntime: 3 ms\ntwo");
  executor_.Finish("b");
  const PlanEnd end = End();
  ASSERT_TRUE(end.status.ok());
  EXPECT_EQ(*end.outputs.at("a.printed"), "one\ntwo");
  EXPECT_EQ(end.printed, "");
}

TEST_F(PlanRunnerTest, KeepsToItsShareOfTheExecutor) {
  Start(Diamond(), /*max_parallel=*/1);
  for (const char* step : {"a", "b", "c", "d"}) executor_.Finish(step);
  EXPECT_TRUE(End().status.ok());
  EXPECT_EQ(executor_.most_at_once(), 1u);
}

TEST_F(PlanRunnerTest, WhoJoinsMayWantMoreOfTheExecutor) {
  Start(Diamond(), /*max_parallel=*/1);
  askers_->Join({.user = UserId{8}, .max_parallel = 2});
  executor_.Finish("a");
  EXPECT_THAT(executor_.Await(2), ElementsAre("b", "c"));
  for (const char* step : {"b", "c", "d"}) executor_.Finish(step);
  EXPECT_TRUE(End().status.ok());
}

TEST_F(PlanRunnerTest, AFailureCancelsTheRestAndIsToldOnceAllHasEnded) {
  Start(Diamond());
  executor_.Finish("a");
  const ManualExecutor::RunningPtr c = executor_.Take("c");
  executor_.Fail("b", 1);
  kernix::Await("the cancellation of c", [&] { return c->cancellation->cancelled(); });
  EXPECT_EQ(end_.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  EXPECT_FALSE(cancellation_->cancelled());
  c->end.set_value(MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
  const PlanEnd end = End();
  EXPECT_EQ(KindOf(end.status), v1::ErrorDetail::COMPILATION);
  EXPECT_EQ(GetErrorDetail(end.status).message(), "b failed: b.cc:1: error: no");
  EXPECT_EQ(end.failed->action.step, "b");
  EXPECT_EQ(end.failed->action.inputs.size(), 1u) << "as it ran";
  EXPECT_THAT(executor_.Await(0), IsEmpty());
}

// Ends what is cancelled at once, in the thread that cancels it.
TEST_F(PlanRunnerTest, AFailureIsNotLostToTheCancellationsThatItCauses) {
  Plan plan;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {})};
  Start(std::move(plan));
  executor_.Await(2);
  const ManualExecutor::RunningPtr b = executor_.Take("b");
  std::atomic<bool> b_has_ended = false;
  const ScopedOnCancel on_cancel(b->cancellation.get(), [&] {
    b->end.set_value(MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it has its chance to come first
    b_has_ended = true;
  });
  executor_.Fail("a", 1);
  const PlanEnd end = End();
  EXPECT_TRUE(b_has_ended);
  EXPECT_EQ(KindOf(end.status), v1::ErrorDetail::COMPILATION);
}

TEST_F(PlanRunnerTest, InOrderAFailureCancelsWhatStandsBehindItAndTheFirstOneOfThePlanCounts) {
  const exec::ActionEnd cancelled = MakeError(v1::ErrorDetail::CANCELLED, "cancelled");
  Plan plan;
  plan.in_order = true;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {}), MakeStep("c", {"a.out"}), MakeStep("d", {}), MakeStep("e", {})};
  Start(std::move(plan));
  executor_.Await(4);
  const ManualExecutor::RunningPtr b = executor_.Take("b");
  const ManualExecutor::RunningPtr e = executor_.Take("e");
  executor_.Fail("d", 1);
  kernix::Await("the cancellation of e", [&] { return e->cancellation->cancelled(); });
  e->end.set_value(cancelled);
  EXPECT_FALSE(b->cancellation->cancelled());
  executor_.Finish("a", "words of a\n");
  const ManualExecutor::RunningPtr c = executor_.Take("c");
  b->end.set_value(MakeError(v1::ErrorDetail::RESOURCE, "no time left"));
  kernix::Await("the cancellation of c", [&] { return c->cancellation->cancelled(); });
  c->end.set_value(cancelled);
  const PlanEnd end = End();
  EXPECT_EQ(KindOf(end.status), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(end.failed, nullptr) << "it is not the command of d";
  EXPECT_EQ(end.printed, "words of a\n");
}

TEST_F(PlanRunnerTest, AnErrorOfTheExecutorIsPassedOn) {
  Start(Diamond());
  executor_.Take("a")->end.set_value(MakeError(v1::ErrorDetail::RESOURCE, "no time left"));
  const PlanEnd end = End();
  EXPECT_EQ(KindOf(end.status), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(end.failed, nullptr) << "no command said no";
}

TEST_F(PlanRunnerTest, AStepWithoutMemoryIsAFailureLikeOthers) {
  executor_.no_memory_for = "c";
  Start(Diamond());
  executor_.Finish("a");
  const ManualExecutor::RunningPtr b = executor_.Take("b");
  kernix::Await("the cancellation of b", [&] { return b->cancellation->cancelled(); });
  b->end.set_value(MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
  const PlanEnd end = End();
  EXPECT_EQ(KindOf(end.status), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(end.failed, nullptr);
}

TEST_F(PlanRunnerTest, StopsWhenItIsAskedTo) {
  Start(Diamond());
  const ManualExecutor::RunningPtr a = executor_.Take("a");
  EXPECT_FALSE(a->cancellation->cancelled());
  cancellation_->Cancel();
  EXPECT_TRUE(a->cancellation->cancelled());
  a->end.set_value(MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
  EXPECT_EQ(KindOf(End().status), v1::ErrorDetail::CANCELLED);
}

TEST_F(PlanRunnerTest, AFailureHasOutputsButNotWhatWasPrinted) {
  Plan plan;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {"a.out"}), MakeStep("c", {"b.out"})};
  Start(std::move(plan));
  executor_.Finish("a", "one\n");
  executor_.Finish("b", "two\n");
  executor_.Fail("c", 1);
  const PlanEnd end = End();
  EXPECT_EQ(end.printed, "");
  EXPECT_EQ(end.outputs.size(), 2u);
}

TEST_F(PlanRunnerTest, OutputNamesTheToolchainByItsOwnPathsHoweverItComes) {
  Plan plan;
  plan.steps = {MakeStep("a", {})};
  plan.steps[0].action.links = {{"toolchain/cuda", "/opt/cuda"}};
  Start(std::move(plan));
  const ManualExecutor::RunningPtr a = executor_.Take("a");
  for (const char* piece : {"toolch", "ain/cuda/x.h(3): error\ninc/0/", "toolchain/cuda/y.h(1)", ": note"}) {
    a->observer->OnOutput(piece);
  }
  EXPECT_THAT(observer_.shown, ElementsAre("/opt/cuda/x.h(3): error\n"));
  exec::ActionResult result;
  result.outputs["a.out"] = exec::MakeContent("made");
  a->end.set_value(std::move(result));
  EXPECT_TRUE(End().status.ok());
  EXPECT_THAT(observer_.shown, ElementsAre("/opt/cuda/x.h(3): error\n", "inc/0/toolchain/cuda/y.h(1): note"));
}

TEST_F(PlanRunnerTest, AStepThatCanNeverRunIsAnErrorNotAHang) {
  Plan plan;
  plan.steps = {MakeStep("a", {}), MakeStep("b", {"nobody.out"})};
  Start(std::move(plan));
  executor_.Finish("a");
  EXPECT_EQ(KindOf(End().status), v1::ErrorDetail::INTERNAL);
}

}  // namespace
}  // namespace kernix::build
