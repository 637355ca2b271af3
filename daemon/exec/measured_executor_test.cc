// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/measured_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "common/base/error.h"
#include "tests/support/inline_executor.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix::exec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CountingObserver : public ActionObserver {
 public:
  void OnStarted(const Action&) override { ++started; }
  int started = 0;
};

class MeasuredExecutorTest : public testing::Test {
 protected:
  MeasuredExecutorTest() : executor_(env_, MakeInlineExecutor(env_, {"/tmp"})) {
    EXPECT_THAT(env_.CreateDirectories("/tmp", 0700), IsOk());
    env_.SetProgram("/bin/fail", [](const ProcessSpec&, Cancellation*) {
      return absl::StatusOr<ProcessResult>(ProcessResult{.exit_code = 3});
    });
    executor_.Register(registry_);
  }

  absl::StatusOr<ActionResult> Run(const std::string& step, const std::string& program, ActionObserver* observer) {
    Action action;
    action.step = step;
    action.argv = {program};
    return executor_.Run(action, OneAsker(UserId{1000}), observer, nullptr);
  }

  MemEnv env_;
  MeasuredExecutor executor_;
  MetricsRegistry registry_;
};

TEST_F(MeasuredExecutorTest, CountsStepsByKindAndTheirWaits) {
  CountingObserver observer;
  EXPECT_EQ(Run("compile", "/bin/fail", &observer)->exit_code, 3);
  EXPECT_EQ(Run("compile kernel.cu", "/bin/fail", nullptr)->exit_code, 3);
  EXPECT_EQ(Run("device link", "/bin/fail", nullptr)->exit_code, 3);
  EXPECT_EQ(Run("compiled by hand", "/bin/fail", nullptr)->exit_code, 3);
  EXPECT_EQ(observer.started, 1);
  EXPECT_THAT(registry_.Text(),
              AllOf(HasSubstr("kernix_queue_wait_seconds_count 4\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"compile\"} 2\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"device link\"} 1\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"link\"} 0\n"),
                    HasSubstr("kernix_step_seconds_count{step=\"other\"} 1\n"), HasSubstr("kernix_steps_running 0\n")));
}

TEST_F(MeasuredExecutorTest, AStepThatIsStoppedCountsWithItsTime) {
  env_.SetProgram("/bin/slow", [&](const ProcessSpec&, Cancellation*) {
    env_.AdvanceClock(std::chrono::seconds(40));
    return absl::StatusOr<ProcessResult>(ProcessResult{.exit_code = 137, .signal = 9, .timed_out = true});
  });
  env_.SetProgram("/bin/cancelled", [&](const ProcessSpec&, Cancellation*) {
    env_.AdvanceClock(std::chrono::seconds(2));
    return absl::StatusOr<ProcessResult>(absl::CancelledError("cancelled"));
  });
  EXPECT_EQ(KindOf(Run("link", "/bin/slow", nullptr).status()), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(KindOf(Run("link", "/bin/cancelled", nullptr).status()), v1::ErrorDetail::CANCELLED);
  EXPECT_THAT(registry_.Text(), AllOf(HasSubstr("kernix_step_seconds_count{step=\"link\"} 2\n"),
                                      HasSubstr("kernix_step_seconds_sum{step=\"link\"} 42\n")));
}

TEST_F(MeasuredExecutorTest, AStepThatCannotRunHasNoTime) {
  EXPECT_FALSE(Run("link", "/bin/missing", nullptr).ok());
  EXPECT_THAT(registry_.Text(), HasSubstr("kernix_step_seconds_count{step=\"link\"} 0\n"));
}

}  // namespace
}  // namespace kernix::exec
