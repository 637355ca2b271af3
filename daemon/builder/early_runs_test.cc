// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/early_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr UserId kUser{7};

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
  void Submit(exec::Action, UserId, exec::ActionObserver* observer, CancellationPtr cancellation,
              exec::ActionDone done) override {
    if (observer != nullptr) ++observed;
    cancellations.push_back(std::move(cancellation));
    running.push_back(std::move(done));
  }
  exec::ExecutorLoad load() const override { return {}; }

  void End(const std::string& output) {
    exec::ActionResult result;
    result.output = output;
    const exec::ActionDone done = std::move(running.front());
    running.pop_front();
    done(std::move(result));
  }

  int observed = 0;
  std::vector<CancellationPtr> cancellations;
  std::deque<exec::ActionDone> running;
};

// Notes what happens, in order.
class Notes : public exec::ActionObserver {
 public:
  void OnQueued(int) override { all.emplace_back("queued"); }
  void OnStarted(const exec::Action&) override { all.emplace_back("started"); }
  void OnOutput(std::string_view text) override { all.emplace_back(text); }

  std::vector<std::string> all;
};

class EarlyRunsTest : public ::testing::Test {
 protected:
  void Submit(const exec::Action& action, UserId user = kUser) {
    runs_.Submit(action, user, &notes_, cancellation_, [this](const absl::StatusOr<exec::ActionResult>& result) {
      notes_.all.push_back(result.ok() ? "done" : "failed");
    });
  }

  std::string Metrics() const {
    MetricsRegistry registry;
    runs_.Register(registry);
    return registry.Text();
  }

  KeepingExecutor executor_;
  EarlyRuns runs_{executor_};
  const CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  const BuildStart start_{MonotonicTime(std::chrono::seconds(5)), 5};
  Notes notes_;
};

TEST_F(EarlyRunsTest, AStepTakesACommandThatRuns) {
  EarlyRuns::Tickets tickets(runs_);
  tickets.Begin(Compile(""), kUser, start_);
  ASSERT_EQ(runs_.StartOf(Compile("tools"), kUser)->unix_ms, 5);
  Submit(Compile("tools"));
  EXPECT_EQ(executor_.running.size(), 1u);
  EXPECT_THAT(notes_.all, ElementsAre("started"));
  executor_.End("printed");
  EXPECT_THAT(notes_.all, ElementsAre("started", "printed", "done"));
  EXPECT_THAT(Metrics(), HasSubstr("kernix_early_compiles_total{end=\"taken\"} 1\n"));
}

TEST_F(EarlyRunsTest, AStepTakesACommandThatHasEnded) {
  EarlyRuns::Tickets tickets(runs_);
  tickets.Begin(Compile(""), kUser, start_);
  executor_.End("");
  Submit(Compile("tools"));
  EXPECT_THAT(notes_.all, ElementsAre("started", "done"));
}

TEST_F(EarlyRunsTest, ACommandIsTakenOnce) {
  EarlyRuns::Tickets tickets(runs_);
  tickets.Begin(Compile(""), kUser, start_);
  Submit(Compile("tools"));
  Submit(Compile("tools"));
  EXPECT_EQ(executor_.running.size(), 2u);
  EXPECT_EQ(executor_.observed, 1) << "the second one is the step's own";
}

TEST_F(EarlyRunsTest, NobodyTakesWhatIsNotHis) {
  EarlyRuns::Tickets tickets(runs_);
  tickets.Begin(Compile(""), kUser, start_);
  exec::Action other = Compile("tools");
  other.argv.emplace_back("-O3");
  EXPECT_FALSE(runs_.StartOf(other, kUser));
  EXPECT_FALSE(runs_.StartOf(Compile("tools"), UserId{8}));
  Submit(other);
  Submit(Compile("tools"), UserId{8});
  EXPECT_EQ(executor_.running.size(), 3u);
}

TEST_F(EarlyRunsTest, TheSameCommandIsBegunOnce) {
  EarlyRuns::Tickets first(runs_);
  first.Begin(Compile(""), kUser, start_);
  EarlyRuns::Tickets second(runs_);
  second.Begin(Compile(""), kUser, start_);
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(executor_.running.size(), 1u);
}

TEST_F(EarlyRunsTest, WhatNobodyTakesIsCancelled) {
  {
    EarlyRuns::Tickets tickets(runs_);
    tickets.Begin(Compile(""), kUser, start_);
  }
  EXPECT_TRUE(executor_.cancellations.front()->cancelled());
  EXPECT_FALSE(runs_.StartOf(Compile("tools"), kUser));
  executor_.End("");
  EXPECT_THAT(notes_.all, IsEmpty());
  EXPECT_THAT(Metrics(), HasSubstr("kernix_early_compiles_total{end=\"dropped\"} 1\n"));
}

TEST_F(EarlyRunsTest, WhatIsTakenGoesOnWithoutItsTicket) {
  {
    EarlyRuns::Tickets tickets(runs_);
    tickets.Begin(Compile(""), kUser, start_);
    Submit(Compile("tools"));
  }
  EXPECT_FALSE(executor_.cancellations.front()->cancelled());
  executor_.End("");
  EXPECT_THAT(notes_.all, ElementsAre("started", "done"));
}

TEST_F(EarlyRunsTest, WhoeverTakesItCanCancelIt) {
  EarlyRuns::Tickets tickets(runs_);
  tickets.Begin(Compile(""), kUser, start_);
  Submit(Compile("tools"));
  cancellation_->Cancel();
  EXPECT_TRUE(executor_.cancellations.front()->cancelled());
}

}  // namespace
}  // namespace kernix::build
