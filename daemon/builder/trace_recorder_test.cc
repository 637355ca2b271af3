// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/trace_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"

namespace kernix::build {
namespace {

using std::chrono::microseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::SizeIs;
using v1::BuildTrace;
using v1::TracedStep;

class ClockEnv : public FaultEnv {
 public:
  ClockEnv() : FaultEnv(Env::Posix()) {}
  MonotonicTime Now() override { return now; }
  int64_t UnixMillis() override { return 1'700'000'000'000; }

  MonotonicTime now{std::chrono::hours(5)};
};

auto Step(const std::string& name, TracedStep::How how, uint64_t begin_us, uint64_t waited_us, uint64_t took_us) {
  return AllOf(Property(&TracedStep::name, name), Property(&TracedStep::how, how),
               Property(&TracedStep::begin_us, begin_us), Property(&TracedStep::waited_us, waited_us),
               Property(&TracedStep::took_us, took_us));
}

class TraceRecorderTest : public ::testing::Test {
 protected:
  void Pass(int us) { env_.now += microseconds(us); }
  MonotonicTime At(int us) const { return began_ + microseconds(us); }

  ClockEnv env_;
  const MonotonicTime began_ = env_.now;
  TraceRecorder recorder_{env_};
};

TEST_F(TraceRecorderTest, RecordsStepsAndTheDaemonsOwnWorkByTheirBeginning) {
  Pass(100);
  recorder_.Lap("plan");
  Pass(30);
  recorder_.Lap("stage");
  // Steps are told of when they end, the later one first here.
  recorder_.Add({"cicc compute_90", v1::TracedStep::RUN, At(400), At(450), At(900)});
  recorder_.Add({"preprocess compute_90", v1::TracedStep::REUSED, At(140), At(140), At(400)});
  Pass(1000);
  recorder_.Skip();
  Pass(50);
  recorder_.Lap("keep artifact");
  Pass(5);
  const BuildTrace trace = recorder_.Trace();
  EXPECT_EQ(trace.began_unix_ms(), 1'700'000'000'000);
  EXPECT_EQ(trace.total_us(), 1185u);
  EXPECT_THAT(trace.step(),
              ElementsAre(Step("plan", TracedStep::DAEMON, 0, 0, 100), Step("stage", TracedStep::DAEMON, 100, 0, 30),
                          Step("preprocess compute_90", TracedStep::REUSED, 140, 0, 260),
                          Step("cicc compute_90", TracedStep::RUN, 400, 50, 450),
                          Step("keep artifact", TracedStep::DAEMON, 1130, 0, 50)));
}

TEST_F(TraceRecorderTest, KeepsTheLongestOfTooManySteps) {
  const int count = static_cast<int>(kMostTracedSteps) + 3;
  for (int i = 0; i < count; ++i) {
    // Three of them take 1 us, all others more.
    const int length = i % 400 == 7 && i < 1000 ? 1 : 10 + i;
    recorder_.Add({StrCat("step ", i), v1::TracedStep::RUN, At(i), At(i), At(i + length)});
  }
  const BuildTrace trace = recorder_.Trace();
  EXPECT_THAT(trace.step(), SizeIs(kMostTracedSteps));
  EXPECT_EQ(trace.left_out(), 3u);
  EXPECT_THAT(trace.step(), Each(Property(&TracedStep::took_us, ::testing::Gt(1u))));
  EXPECT_EQ(trace.step().begin()->name(), "step 0");
  EXPECT_EQ(trace.step().rbegin()->name(), StrCat("step ", count - 1));
}

TEST_F(TraceRecorderTest, CutsLongNamesBetweenCharacters) {
  std::string name(kLongestTracedName - 1, 'a');
  recorder_.Add({name + "ä.cu", v1::TracedStep::RUN, At(0), At(0), At(1)});
  recorder_.Add({"\xff", v1::TracedStep::RUN, At(2), At(2), At(3)});
  const BuildTrace trace = recorder_.Trace();
  EXPECT_EQ(trace.step(0).name(), name);
  EXPECT_TRUE(IsValidUtf8(trace.step(1).name()));
}

TEST_F(TraceRecorderTest, TimesBeforeTheBuildBeganCountAsItsBeginning) {
  recorder_.Add({"early", v1::TracedStep::RUN, At(-50), At(-20), At(10)});
  EXPECT_THAT(recorder_.Trace().step(), ElementsAre(Step("early", TracedStep::RUN, 0, 30, 30)));
}

TEST_F(TraceRecorderTest, ManyThreadsMayAdd) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) recorder_.Add({"step", v1::TracedStep::RUN, At(j), At(j), At(j + 1)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(recorder_.Trace().step(), SizeIs(800));
}

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

TEST_F(StepTimesTest, AStepWaitsUntilItsFirstCommandStarts) {
  TimedStep step(env_, metrics_, "step", StepKind::kHostCompile, nullptr, &trace_);
  executor_.end = Ran();
  step.Run(executor_, {}, nullptr, nullptr).IgnoreError();
  step.End(step.Run(executor_, {}, nullptr, nullptr));
  EXPECT_EQ(trace_.Trace().step(0).waited_us(), 5'000'000u);
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
