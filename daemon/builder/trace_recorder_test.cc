// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/trace_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "tests/support/fault_env.h"

namespace kernix::build {
namespace {

using cache::BuildTrace;
using cache::StepWay;
using cache::TracedStep;
using std::chrono::microseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;

class ClockEnv : public FaultEnv {
 public:
  ClockEnv() : FaultEnv(Env::Posix()) {}
  MonotonicTime Now() override { return now; }
  int64_t UnixMillis() override { return 1'700'000'000'000; }

  MonotonicTime now{std::chrono::hours(5)};
};

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
  recorder_.Add({"cicc compute_90", StepWay::kRun, At(400), At(450), At(900)});
  recorder_.Add({"preprocess compute_90", StepWay::kReused, At(140), At(140), At(400)});
  Pass(1000);
  recorder_.Skip();
  Pass(50);
  recorder_.Lap("keep artifact");
  Pass(5);
  EXPECT_EQ(recorder_.Trace(), (BuildTrace{.began_unix_ms = 1'700'000'000'000,
                                           .total_us = 1185,
                                           .steps = {{"plan", StepWay::kDaemon, 0, 0, 100},
                                                     {"stage", StepWay::kDaemon, 100, 0, 30},
                                                     {"preprocess compute_90", StepWay::kReused, 140, 0, 260},
                                                     {"cicc compute_90", StepWay::kRun, 400, 50, 450},
                                                     {"keep artifact", StepWay::kDaemon, 1130, 0, 50}}}));
}

TEST_F(TraceRecorderTest, KeepsTheLongestOfTooManySteps) {
  const int count = static_cast<int>(kMostTracedSteps) + 3;
  for (int i = 0; i < count; ++i) {
    // Three of them take 1 us, all others more.
    const int length = i % 400 == 7 && i < 1000 ? 1 : 10 + i;
    recorder_.Add({StrCat("step ", i), StepWay::kRun, At(i), At(i), At(i + length)});
  }
  const BuildTrace trace = recorder_.Trace();
  EXPECT_THAT(trace.steps, SizeIs(kMostTracedSteps));
  EXPECT_EQ(trace.left_out, 3u);
  EXPECT_THAT(trace.steps, Each(Field(&TracedStep::took_us, ::testing::Gt(1u))));
  EXPECT_EQ(trace.steps.front().name, "step 0");
  EXPECT_EQ(trace.steps.back().name, StrCat("step ", count - 1));
}

TEST_F(TraceRecorderTest, CutsLongNamesBetweenCharacters) {
  std::string name(kLongestTracedName - 1, 'a');
  recorder_.Add({name + "ä.cu", StepWay::kRun, At(0), At(0), At(1)});
  recorder_.Add({"\xff", StepWay::kRun, At(2), At(2), At(3)});
  const BuildTrace trace = recorder_.Trace();
  EXPECT_EQ(trace.steps[0].name, name);
  EXPECT_TRUE(IsValidUtf8(trace.steps[1].name));
}

TEST_F(TraceRecorderTest, TimesBeforeTheBuildBeganCountAsItsBeginning) {
  recorder_.Add({"early", StepWay::kRun, At(-50), At(-20), At(10)});
  EXPECT_THAT(recorder_.Trace().steps, ElementsAre(TracedStep{"early", StepWay::kRun, 0, 30, 30}));
}

TEST_F(TraceRecorderTest, ManyThreadsMayAdd) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) recorder_.Add({"step", StepWay::kRun, At(j), At(j), At(j + 1)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(recorder_.Trace().steps, SizeIs(800));
}

}  // namespace
}  // namespace kernix::build
