// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/early_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

exec::Action Compile(const std::string& salt) {
  exec::Action action;
  action.step = "compile";
  action.argv = {"tool"};
  action.outputs = {"out"};
  if (!salt.empty()) action.salt = DigestOf(salt);
  return action;
}

// Keeps actions until the test ends them.
class KeepingExecutor : public exec::Executor {
 public:
  void Submit(exec::Action, exec::AskersPtr, exec::ActionObserver* observer, CancellationPtr cancellation,
              exec::ActionDone done) override {
    if (throws) throw std::bad_alloc();
    observers.push_back(observer);
    cancellations.push_back(std::move(cancellation));
    running.push_back(std::move(done));
  }
  exec::ExecutorLoad load() const override { return {}; }

  void End() {
    const exec::ActionDone done = std::move(running.front());
    running.pop_front();
    done(exec::ActionResult());
  }

  bool throws = false;
  std::vector<exec::ActionObserver*> observers;
  std::vector<CancellationPtr> cancellations;
  std::deque<exec::ActionDone> running;
};

// Notes what happens, in order.
class Notes : public StepObserver {
 public:
  void OnQueued(int) override { all.emplace_back("queued"); }
  void OnStarted(const exec::Action&) override { all.emplace_back("started"); }
  void OnOutput(std::string_view text) override { all.emplace_back(text); }
  void OnStepEnded(const StepTimes& times) override { ended = times; }

  std::vector<std::string> all;
  std::optional<StepTimes> ended;
};

class EarlyRunsTest : public ::testing::Test {
 protected:
  bool GiveTo(const exec::Action& action) {
    return runs_->GiveTo(action, step_, cancellation_, [this](const absl::StatusOr<exec::ActionResult>& result) {
      step_.End(result);
      notes_.all.push_back(result.ok() ? "done" : "failed");
    });
  }

  std::string Metrics() const {
    MetricsRegistry registry;
    counts_->Register(registry);
    return registry.Text();
  }

  KeepingExecutor executor_;
  const std::shared_ptr<EarlyRunCounts> counts_ = std::make_shared<EarlyRunCounts>();
  const CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  Notes notes_;
  std::optional<EarlyRuns> runs_{std::in_place, Env::Posix(), executor_, UserId{7}, counts_};
  TimedStep step_{Env::Posix(), "compile", &notes_};
};

TEST_F(EarlyRunsTest, AStepTakesACommandThatRuns) {
  runs_->Begin(Compile(""));
  executor_.observers.front()->OnStarted(Compile(""));
  executor_.observers.front()->OnOutput("early, ");
  EXPECT_TRUE(GiveTo(Compile("tools")));
  executor_.observers.front()->OnOutput("late");
  executor_.End();
  EXPECT_THAT(notes_.all, ElementsAre("started", "early, ", "late", "done"));
  EXPECT_THAT(Metrics(), HasSubstr("kernix_early_compiles_total{end=\"taken\"} 1\n"));
}

TEST_F(EarlyRunsTest, AStepTakesACommandThatWaits) {
  runs_->Begin(Compile(""));
  EXPECT_TRUE(GiveTo(Compile("tools")));
  executor_.observers.front()->OnQueued(3);
  executor_.observers.front()->OnStarted(Compile(""));
  executor_.End();
  EXPECT_THAT(notes_.all, ElementsAre("queued", "started", "done"));
}

TEST_F(EarlyRunsTest, AStepTakesACommandThatHasEndedWithItsTimes) {
  runs_->Begin(Compile(""));
  executor_.observers.front()->OnStarted(Compile(""));
  executor_.End();
  const MonotonicTime before = Env::Posix().Now();
  EXPECT_TRUE(GiveTo(Compile("tools")));
  EXPECT_THAT(notes_.all, ElementsAre("started", "done"));
  ASSERT_TRUE(notes_.ended);
  EXPECT_GE(notes_.ended->ready, runs_->start().monotonic);
  EXPECT_LE(notes_.ended->ready, notes_.ended->started);
  EXPECT_LE(notes_.ended->started, before);
}

TEST_F(EarlyRunsTest, ACommandIsBegunOnceAndTakenOnce) {
  EXPECT_FALSE(runs_->any());
  runs_->Begin(Compile(""));
  runs_->Begin(Compile(""));
  EXPECT_TRUE(runs_->any());
  EXPECT_EQ(executor_.running.size(), 1u);
  EXPECT_TRUE(GiveTo(Compile("tools")));
  EXPECT_FALSE(GiveTo(Compile("tools")));
}

TEST_F(EarlyRunsTest, AnotherCommandIsNotTaken) {
  runs_->Begin(Compile(""));
  exec::Action other = Compile("tools");
  other.argv.emplace_back("-O3");
  EXPECT_FALSE(GiveTo(other));
  EXPECT_THAT(notes_.all, IsEmpty());
}

TEST_F(EarlyRunsTest, WhatNobodyTakesIsCancelled) {
  runs_->Begin(Compile(""));
  runs_.reset();
  EXPECT_TRUE(executor_.cancellations.front()->cancelled());
  executor_.End();
  EXPECT_THAT(notes_.all, IsEmpty());
  EXPECT_THAT(Metrics(), HasSubstr("kernix_early_compiles_total{end=\"dropped\"} 1\n"));
}

TEST_F(EarlyRunsTest, WhatIsTakenGoesOnWithoutTheOthers) {
  runs_->Begin(Compile(""));
  EXPECT_TRUE(GiveTo(Compile("tools")));
  runs_.reset();
  EXPECT_FALSE(executor_.cancellations.front()->cancelled());
  executor_.End();
  EXPECT_THAT(notes_.all, ElementsAre("done"));
}

TEST_F(EarlyRunsTest, WhoeverTakesItCanCancelIt) {
  runs_->Begin(Compile(""));
  EXPECT_TRUE(GiveTo(Compile("tools")));
  cancellation_->Cancel();
  EXPECT_TRUE(executor_.cancellations.front()->cancelled());
}

TEST_F(EarlyRunsTest, ACommandThatCannotBeginIsNotWaitedFor) {
  executor_.throws = true;
  EXPECT_THROW(runs_->Begin(Compile("")), std::bad_alloc);
  EXPECT_FALSE(GiveTo(Compile("tools")));
}

}  // namespace
}  // namespace kernix::build
