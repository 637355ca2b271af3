// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "common/base/error.h"
#include "daemon/builder/trace_recorder.h"
#include "tests/support/mem_env.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CountingObserver : public exec::ActionObserver {
 public:
  void OnStarted(const exec::Action&) override { ++started; }
  int started = 0;
};

// Has each action wait for 5 s, and run for 40 s.
class SlowExecutor : public exec::Executor {
 public:
  explicit SlowExecutor(MemEnv& env) : env_(env) {}

  exec::ActionEnd Run(const exec::Action& action, const exec::AskersPtr&, exec::ActionObserver* observer,
                      const CancellationPtr&) override {
    env_.AdvanceClock(std::chrono::seconds(5));
    observer->OnStarted(action);
    env_.AdvanceClock(std::chrono::seconds(40));
    return end;
  }
  exec::ExecutorLoad load() const override { return {}; }

  exec::ActionEnd end;

 private:
  MemEnv& env_;
};

class StepTimesTest : public testing::Test {
 protected:
  StepTimesTest() { metrics_.Register(registry_, {}); }

  // A step that is looked for elsewhere for 100 s, and whose command then runs.
  void Run(StepKind kind, const exec::ActionEnd& end, int times = 1) {
    TimedStep step(env_, metrics_, "step", kind, &observer_, &trace_);
    env_.AdvanceClock(std::chrono::seconds(100));
    executor_.end = end;
    for (int i = 0; i < times; ++i) step.End(step.Run(executor_, {}, nullptr, nullptr));
  }

  static exec::ActionResult Ran() { return {.exit_code = 3, .wall = std::chrono::seconds(2)}; }

  MemEnv env_;
  SlowExecutor executor_{env_};
  StepMetrics metrics_;
  MetricsRegistry registry_;
  CountingObserver observer_;
  TraceRecorder trace_{env_};
};

TEST_F(StepTimesTest, CountsCommandsByKindAndTheirWaits) {
  Run(StepKind::kCppCompile, Ran());
  Run(StepKind::kCudaCompile, Ran());
  Run(StepKind::kPlainLink, Ran());
  Run(StepKind::kHostCompile, Ran());
  Run(StepKind::kPtxas, Ran());
  EXPECT_EQ(observer_.started, 5);
  EXPECT_THAT(registry_.Text(),
              AllOf(HasSubstr("kernix_queue_wait_seconds_count 5\n"), HasSubstr("kernix_queue_wait_seconds_sum 25\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"compile\"} 2\n"),
                    HasSubstr("kernix_step_seconds_sum{step=\"compile\"} 4\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"link\"} 1\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"host compile\"} 1\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"ptxas\"} 1\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"other\"} 0\n")));
}

TEST_F(StepTimesTest, EachCommandOfAStepCounts) {
  Run(StepKind::kHostCompile, Ran(), /*times=*/2);
  EXPECT_THAT(registry_.Text(), AllOf(HasSubstr("kernix_queue_wait_seconds_sum 10\n"),
                                      HasSubstr("kernix_step_seconds_count{step=\"host compile\"} 2\n"),
                                      HasSubstr("kernix_step_seconds_sum{step=\"host compile\"} 4\n")));
}

TEST_F(StepTimesTest, AStepThatIsStoppedCountsWithItsTime) {
  Run(StepKind::kLink, MakeError(v1::ErrorDetail::RESOURCE, "it takes too long"));
  Run(StepKind::kLink, MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
  EXPECT_THAT(registry_.Text(), AllOf(HasSubstr("kernix_step_seconds_count{step=\"link\"} 2\n"),
                                      HasSubstr("kernix_step_seconds_sum{step=\"link\"} 80\n")));
}

TEST_F(StepTimesTest, AStepThatCannotRunHasNoTime) {
  Run(StepKind::kLink, MakeError(v1::ErrorDetail::TOOLCHAIN, "there is no such program"));
  EXPECT_THAT(registry_.Text(), HasSubstr("kernix_step_seconds_count{step=\"link\"} 0\n"));
}

TEST_F(StepTimesTest, WhatAnotherStepHasMadeIsInTheTraceAlone) {
  TimedStep step(env_, metrics_, "step", StepKind::kCicc, nullptr, &trace_);
  step.TakesResult(v1::TracedStep::REUSED);
  step.End(exec::ActionResult());
  EXPECT_EQ(trace_.Trace().step(0).how(), v1::TracedStep::REUSED);
  EXPECT_THAT(registry_.Text(), AllOf(HasSubstr("kernix_queue_wait_seconds_count 0\n"),
                                      HasSubstr("kernix_step_seconds_count{step=\"cicc\"} 0\n")));
}

}  // namespace
}  // namespace kernix::build
