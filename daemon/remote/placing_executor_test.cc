// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/placing_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "tests/support/await.h"
#include "tests/support/run_in_thread.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::remote {
namespace {

using exec::Placement;
using exec::Work;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

exec::Action Of(Work work, std::string step = "compile") {
  exec::Action action;
  action.step = std::move(step);
  action.argv = {"g++"};
  action.work = work;
  return action;
}

absl::StatusOr<exec::ActionResult> Ran(const std::string& where) {
  exec::ActionResult result;
  result.output = where;
  result.wall = Duration(20);
  return result;
}

absl::StatusOr<exec::ActionResult> Failed(int exit_code, const std::string& output) {
  exec::ActionResult result;
  result.exit_code = exit_code;
  result.output = output;
  return result;
}

absl::Status Broken() { return MakeError(v1::ErrorDetail::UNREACHABLE, "the engine is down"); }

// As Upstream::Execute() says it.
absl::Status NotTaken() {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::UNREACHABLE);
  detail.set_code(static_cast<int>(absl::StatusCode::kNotFound));
  detail.set_message("no worker has taken the action: set upstream.queue_timeout");
  return MakeError(detail);
}

// The name of a step that ends when it is cancelled.
constexpr char kWaits[] = "compile until the end";

// Notes where its action starts.
class Notes : public exec::ActionObserver {
 public:
  void OnQueued(const exec::Action&, int) override {}
  void OnStarted(const exec::Action&) override { ++started; }
  void OnOutput(std::string_view text) override { output += text; }
  std::atomic<int> started = 0;
  std::string output;
};

// One job on this machine, and an engine that does what the test says. Both are pools.
class PlacingExecutorTest : public ::testing::Test {
 protected:
  using Run = std::function<absl::StatusOr<exec::ActionResult>()>;

  void MakeExecutor(exec::Placements placements, Duration overflow_after = Duration(0)) {
    auto here = [this](const exec::Action& action, exec::ActionObserver* observer, Cancellation* cancellation) {
      return Perform(here_, action, observer, cancellation);
    };
    auto there = [this](const exec::Action& action, exec::ActionObserver* observer, Cancellation* cancellation) {
      return Perform(there_, action, observer, cancellation);
    };
    executor_ = std::make_unique<PlacingExecutor>(exec::MakePoolExecutor(Env::Posix(), here, 1, 1000),
                                                  exec::MakePoolExecutor(Env::Posix(), there, 4, 0),
                                                  PlacingOptions{placements, overflow_after}, pause_);
    registry_ = std::make_unique<MetricsRegistry>();
    executor_->Register(*registry_);
  }

  std::future<absl::StatusOr<exec::ActionResult>> Begin(exec::Action action, exec::ActionObserver* observer = nullptr,
                                                        CancellationPtr cancellation = nullptr) {
    auto done = std::make_shared<std::promise<absl::StatusOr<exec::ActionResult>>>();
    auto future = done->get_future();
    threads_.Run(*executor_, std::move(action), exec::OneAsker(UserId{1000}), observer, std::move(cancellation),
                 [done](exec::ActionEnd end) { done->set_value(std::move(end)); });
    return future;
  }
  absl::StatusOr<exec::ActionResult> RunOne(exec::Action action, exec::ActionObserver* observer = nullptr) {
    return AwaitValue("the action", Begin(std::move(action), observer));
  }
  // Where the action has run: "here" or "there".
  std::string WhereItRuns(exec::Action action) {
    const auto result = RunOne(std::move(action));
    EXPECT_THAT(result, IsOk());
    return result.ok() ? result->output : "";
  }

  SteppedEnv env_;
  WorkerPause pause_{env_};
  Run here_ = [] { return Ran("here"); };
  Run there_ = [] { return Ran("there"); };
  std::unique_ptr<MetricsRegistry> registry_;
  std::unique_ptr<PlacingExecutor> executor_;
  exec::ActionThreads threads_;

 private:
  static absl::StatusOr<exec::ActionResult> Perform(const Run& run, const exec::Action& action,
                                                    exec::ActionObserver* observer, Cancellation* cancellation) {
    std::promise<void> cancelled;
    const ScopedOnCancel on_cancel(cancellation, [&] { cancelled.set_value(); });
    if (observer != nullptr) observer->OnStarted(action);
    if (action.step == kWaits) cancelled.get_future().wait();
    absl::StatusOr<exec::ActionResult> result = run();
    if (observer != nullptr && result.ok()) observer->OnOutput(result->output);
    if (cancellation->cancelled()) return MakeError(v1::ErrorDetail::CANCELLED, "cancelled");
    return result;
  }
};

TEST_F(PlacingExecutorTest, EachKindOfWorkHasAPlacementOfItsOwn) {
  MakeExecutor({.device_compiles = Placement::kRemote, .links = Placement::kPreferRemote});
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
  EXPECT_EQ(WhereItRuns(Of(Work::kDeviceCompile)), "there");
  EXPECT_EQ(WhereItRuns(Of(Work::kLink)), "there");
  EXPECT_EQ(WhereItRuns(Of(Work::kOther)), "here");
  EXPECT_THAT(registry_->Text(), AllOf(HasSubstr("kernix_placed_steps_total{place=\"local\"} 2\n"),
                                       HasSubstr("kernix_placed_steps_total{place=\"remote\"} 2\n")));
}

TEST_F(PlacingExecutorTest, WhatNeedsAWorkerRunsNowhereElse) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote, .links = Placement::kOverflow}, Duration(1'000));
  for (const Work work : {Work::kOther, Work::kHostCompile, Work::kDeviceCompile, Work::kLink}) {
    exec::Action action = Of(work);
    action.needs_worker = true;
    EXPECT_EQ(WhereItRuns(std::move(action)), "there");
  }
  exec::Action action = Of(Work::kHostCompile);
  action.needs_worker = true;
  there_ = [] { return Failed(1, "no.cc:1:1: error: what?\n"); };
  const auto refused = RunOne(action);
  ASSERT_THAT(refused, IsOk());
  EXPECT_EQ(refused->exit_code, 1);
  there_ = [] { return Broken(); };
  const absl::Status failed = RunOne(action).status();
  EXPECT_EQ(KindOf(failed), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(failed).message(),
              AllOf(HasSubstr("could not run on a worker: the engine is down"), HasSubstr("has no compiler")));
  there_ = [] { return Failed(127, "g++: not found\n"); };
  EXPECT_THAT(GetErrorDetail(RunOne(action).status()).message(),
              AllOf(HasSubstr("the worker seems to lack g++"), HasSubstr("toolchain_description")));
  EXPECT_THAT(registry_->Text(), HasSubstr("kernix_placed_steps_total{place=\"local\"} 0\n"));
}

TEST_F(PlacingExecutorTest, WhatTheEngineFailsRunsHereWithOneWarning) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote});
  there_ = [] { return Broken(); };
  ::testing::internal::CaptureStderr();
  Notes notes;
  EXPECT_THAT(RunOne(Of(Work::kHostCompile), &notes), IsOk());
  EXPECT_EQ(notes.started, 2) << "there, and then here";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
  there_ = [] { return Ran("there"); };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "there");
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t warning = log.find("workers_fail ");
  ASSERT_NE(warning, std::string::npos) << log;
  EXPECT_EQ(log.find("workers_fail ", warning + 1), std::string::npos) << log;
  EXPECT_THAT(log, HasSubstr("the engine is down"));
  EXPECT_EQ(log.find("workers_work_again"), log.rfind("workers_work_again")) << log;
  EXPECT_NE(log.find("workers_work_again"), std::string::npos) << log;
  EXPECT_THAT(registry_->Text(), HasSubstr("kernix_steps_run_here_instead_total{why=\"engine\"} 3\n"));
}

TEST_F(PlacingExecutorTest, WhatEndsACommandForWantOfResourcesDoesNotRunAgain) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote});
  int runs = 0;
  here_ = [&] {
    ++runs;
    return Ran("here");
  };
  there_ = [] {
    v1::ErrorDetail late;
    late.set_kind(v1::ErrorDetail::RESOURCE);
    late.set_command("g++");
    return MakeError(late);
  };
  EXPECT_EQ(KindOf(RunOne(Of(Work::kHostCompile)).status()), v1::ErrorDetail::RESOURCE);
  there_ = [] { return MakeError(v1::ErrorDetail::CANCELLED, "cancelled"); };
  EXPECT_EQ(KindOf(RunOne(Of(Work::kHostCompile)).status()), v1::ErrorDetail::CANCELLED);
  EXPECT_EQ(runs, 0);
  there_ = [] { return MakeError(v1::ErrorDetail::RESOURCE, "the engine has no room"); };
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
}

TEST_F(PlacingExecutorTest, WhatFailsThereAndHereIsTheCommandsOwnFailure) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote});
  there_ = [] { return Failed(1, "a.cc:1: error there\n"); };
  here_ = [] { return Failed(1, "a.cc:1: error here\n"); };
  ::testing::internal::CaptureStderr();
  Notes notes;
  const auto result = RunOne(Of(Work::kHostCompile), &notes);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_EQ(result->output, "a.cc:1: error here\n");
  EXPECT_EQ(notes.output, "a.cc:1: error here\n") << "the message shows once";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(registry_->Text(), AllOf(HasSubstr("kernix_steps_run_here_instead_total{why=\"command\"} 1\n"),
                                       HasSubstr("kernix_steps_failed_on_workers_alone_total 0\n")));
}

TEST_F(PlacingExecutorTest, WhatFailsThereAloneEndsWellWithOneWarningForEachKindOfWork) {
  MakeExecutor({.host_compiles = Placement::kOverflow, .device_compiles = Placement::kPreferRemote}, Duration(-1));
  there_ = [] { return Failed(1, "execvp g++: No such file or directory\nmore\n"); };
  ::testing::internal::CaptureStderr();
  Notes notes;
  const auto result = RunOne(Of(Work::kHostCompile), &notes);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(notes.output, "here") << "nobody hears of the run that does not count";
  EXPECT_EQ(notes.started, 2);
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
  EXPECT_EQ(WhereItRuns(Of(Work::kDeviceCompile, "ptxas sm_90")), "here");
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t first = log.find("worker_lacks_tool ");
  ASSERT_NE(first, std::string::npos) << log;
  const size_t second = log.find("worker_lacks_tool ", first + 1);
  ASSERT_NE(second, std::string::npos) << log;
  EXPECT_EQ(log.find("worker_lacks_tool ", second + 1), std::string::npos) << log;
  EXPECT_THAT(log, AllOf(HasSubstr("execvp g++: No such file or directory"), HasSubstr("tool=g++")));
  EXPECT_THAT(registry_->Text(), AllOf(HasSubstr("kernix_steps_run_here_instead_total{why=\"command\"} 3\n"),
                                       HasSubstr("kernix_steps_failed_on_workers_alone_total 3\n")));
}

TEST_F(PlacingExecutorTest, WhatAWorkerPrintsIsHeardIfItsRunCounts) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote});
  Notes notes;
  EXPECT_THAT(RunOne(Of(Work::kHostCompile), &notes), IsOk());
  EXPECT_EQ(notes.output, "there");
}

TEST_F(PlacingExecutorTest, WhereStepsRunOnWorkersAloneAnErrorNamesTheToolThatTheyLack) {
  MakeExecutor({.host_compiles = Placement::kRemote});
  exec::Action action = Of(Work::kHostCompile);
  action.argv = {"toolchain/host/g++"};
  action.links = {{"toolchain/host", "/opt/gcc/bin"}};
  for (const auto& [exit_code, output] : std::vector<std::pair<int, std::string>>{
           {127, ""},
           {126, "sh: toolchain/host/g++: Permission denied\n"},
           {1, "bwrap: execvp toolchain/host/g++: No such file or directory\n"},
           {1, "g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory\n"}}) {
    there_ = [code = exit_code, text = output] { return Failed(code, text); };
    const absl::Status status = RunOne(action).status();
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << output;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("the worker seems to lack /opt/gcc/bin/g++"), HasSubstr("upstream.platform")));
  }
  there_ = [] { return Failed(1, "a.cc:1:10: fatal error: executor.h: No such file or directory\n"); };
  const auto result = RunOne(action);
  ASSERT_THAT(result, IsOk()) << "the compiler's own error";
  EXPECT_EQ(result->exit_code, 1);
}

TEST_F(PlacingExecutorTest, WhatMayRunNowhereElseFailsAndSaysSo) {
  MakeExecutor({.host_compiles = Placement::kRemote});
  there_ = [] { return Broken(); };
  const absl::Status status = RunOne(Of(Work::kHostCompile)).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("step \"compile\" could not run on a worker: the engine is down"),
                    HasSubstr("set \"prefer-remote\"")));
}

TEST_F(PlacingExecutorTest, IfNoWorkerTakesAStepTheNextOnesDoNotWait) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote, .device_compiles = Placement::kOverflow}, Duration(-1));
  std::atomic<int> sent = 0;
  there_ = [&]() -> absl::StatusOr<exec::ActionResult> {
    ++sent;
    return NotTaken();
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
  EXPECT_EQ(WhereItRuns(Of(Work::kDeviceCompile)), "here");
  EXPECT_EQ(sent, 1);
  EXPECT_THAT(pause_.why().value_or(""), HasSubstr("upstream.queue_timeout"));
  EXPECT_THAT(registry_->Text(), AllOf(HasSubstr("kernix_steps_run_here_instead_total{why=\"engine\"} 1\n"),
                                       HasSubstr("kernix_steps_run_here_instead_total{why=\"pause\"} 3\n")));

  env_.AdvanceClock(WorkerPause::kProbeInterval);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
  EXPECT_EQ(sent, 2) << "one finds out whether there are workers now";
  there_ = [] { return Ran("there"); };
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
  env_.AdvanceClock(WorkerPause::kProbeInterval);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "there");
  EXPECT_EQ(pause_.why(), std::nullopt);
}

TEST_F(PlacingExecutorTest, AResultOfAnEarlierRunIsNoWorker) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote});
  pause_.NotTaken("no worker");
  env_.AdvanceClock(WorkerPause::kProbeInterval);
  there_ = [] {
    auto result = Ran("there");
    result->ran_earlier = true;
    return result;
  };
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "there");
  EXPECT_NE(pause_.why(), std::nullopt);
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
}

TEST_F(PlacingExecutorTest, WhatMayRunNowhereElseIsSentInAPauseToo) {
  MakeExecutor({.host_compiles = Placement::kRemote, .links = Placement::kPreferRemote});
  there_ = [] { return NotTaken(); };
  const absl::Status status = RunOne(Of(Work::kHostCompile)).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("could not run on a worker: no worker has taken the action: set upstream.queue_timeout"),
                    HasSubstr("set \"prefer-remote\"")));
  EXPECT_EQ(WhereItRuns(Of(Work::kLink)), "here");
  there_ = [] { return Ran("there"); };
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "there");
  EXPECT_EQ(WhereItRuns(Of(Work::kLink)), "there");
}

TEST_F(PlacingExecutorTest, WhatNoWorkerCanRunRunsHere) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote});
  exec::Action action = Of(Work::kHostCompile);
  action.argv.push_back(std::string(exec::kRootPlaceholder) + "/a.cc");
  EXPECT_EQ(WhereItRuns(action), "here");
  EXPECT_THAT(registry_->Text(), AllOf(HasSubstr("kernix_steps_run_here_instead_total{why=\"step\"} 1\n"),
                                       HasSubstr("kernix_steps_run_here_instead_total{why=\"engine\"} 0\n")));
}

TEST_F(PlacingExecutorTest, AFullMachineSendsWorkAway) {
  MakeExecutor({.host_compiles = Placement::kOverflow}, /*overflow_after=*/Duration(500));
  std::promise<void> release;
  here_ = [held = release.get_future().share()] {
    held.wait();
    return Ran("here");
  };
  Notes notes;
  auto first = Begin(Of(Work::kHostCompile), &notes);
  Await("the first action to run", [&] { return notes.started > 0; });
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "there") << "it would wait for a second, as far as anybody knows";
  auto waits = Begin(Of(Work::kOther));
  const exec::ExecutorLoad load = executor_->load();
  EXPECT_EQ(load.running, 1);
  EXPECT_EQ(load.queued, 1);
  EXPECT_EQ(load.max_jobs, 1);
  release.set_value();
  EXPECT_THAT(AwaitValue("the first", std::move(first)), IsOk());
  EXPECT_THAT(AwaitValue("the one that waits", std::move(waits)), IsOk());
  EXPECT_EQ(WhereItRuns(Of(Work::kHostCompile)), "here");
}

TEST_F(PlacingExecutorTest, WhatRunsThereCountsAsRunning) {
  MakeExecutor({.host_compiles = Placement::kRemote});
  std::promise<void> release;
  there_ = [held = release.get_future().share()] {
    held.wait();
    return Ran("there");
  };
  Notes notes;
  auto action = Begin(Of(Work::kHostCompile), &notes);
  Await("the action to run", [&] { return notes.started > 0; });
  EXPECT_EQ(executor_->load().running, 1);
  release.set_value();
  EXPECT_THAT(AwaitValue("the action", std::move(action)), IsOk());
  EXPECT_EQ(executor_->load().running, 0);
}

TEST_F(PlacingExecutorTest, ACancelledActionDoesNotRunHere) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote});
  const auto cancellation = std::make_shared<Cancellation>();
  there_ = [&] {
    cancellation->Cancel();
    return Broken();
  };
  const auto result = AwaitValue("the action", Begin(Of(Work::kHostCompile), nullptr, cancellation));
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::CANCELLED);
  EXPECT_THAT(registry_->Text(), HasSubstr("kernix_placed_steps_total{place=\"local\"} 0\n"));
}

TEST_F(PlacingExecutorTest, ItsEndCancelsWhatRunsThere) {
  MakeExecutor({.host_compiles = Placement::kPreferRemote});
  Notes notes;
  auto action = Begin(Of(Work::kHostCompile, kWaits), &notes);
  Await("the action to run", [&] { return notes.started > 0; });
  executor_.reset();
  EXPECT_EQ(KindOf(AwaitValue("the action", std::move(action)).status()), v1::ErrorDetail::CANCELLED);
}

// One job here, and four there.
TEST_F(PlacingExecutorTest, ABurstIsSharedOutBetweenBothExecutors) {
  MakeExecutor({.host_compiles = Placement::kOverflow}, /*overflow_after=*/Duration(500));
  std::promise<void> release;
  const auto held = release.get_future().share();
  here_ = [held] {
    held.wait();
    return Ran("here");
  };
  there_ = [held] {
    held.wait();
    return Ran("there");
  };
  std::vector<std::future<absl::StatusOr<exec::ActionResult>>> burst;
  for (int i = 0; i < 20; ++i) burst.push_back(Begin(Of(Work::kHostCompile)));
  EXPECT_THAT(registry_->Text(), AllOf(HasSubstr("kernix_placed_steps_total{place=\"local\"} 4\n"),
                                       HasSubstr("kernix_placed_steps_total{place=\"remote\"} 16\n")));
  release.set_value();
  for (auto& action : burst) EXPECT_THAT(AwaitValue("the burst", std::move(action)), IsOk());
}

TEST(WaitEstimateTest, LearnsHowLongActionsTake) {
  WaitEstimate wait(2);
  EXPECT_EQ(wait.Wait(), Duration(0));
  const WaitEstimate::Entry one = wait.Enter(Of(Work::kHostCompile, "compile a.cc"));
  EXPECT_EQ(wait.Wait(), Duration(0)) << "there is room for another one";
  const WaitEstimate::Entry two = wait.Enter(Of(Work::kLink, "link"));
  EXPECT_EQ(wait.Wait(), WaitEstimate::kFirstGuess);
  exec::ActionResult result;
  result.wall = std::chrono::seconds(9);
  wait.Leave(one, result);
  wait.Leave(two, absl::CancelledError());
  EXPECT_EQ(wait.Wait(), Duration(0));
  for (const char* name : {"compile b.cc", "compile c.cc"}) wait.Enter(Of(Work::kHostCompile, name));
  EXPECT_EQ(wait.Wait(), std::chrono::seconds(3)) << "a second, and a quarter of eight more";
}

}  // namespace
}  // namespace kernix::remote
