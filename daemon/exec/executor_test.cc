// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <new>
#include <optional>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "tests/support/await.h"
#include "tests/support/inline_executor.h"
#include "tests/support/mem_env.h"
#include "tests/support/run_in_thread.h"

namespace kernix::exec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Records events in order, from any thread.
class Events {
 public:
  void Add(std::string event) {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
    changed_.NotifyAll();
  }

  void WaitFor(const std::string& event) {
    MutexLock lock(mutex_);
    const auto happened = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::find(events_.begin(), events_.end(), event) != events_.end();
    };
    AwaitChange(event, changed_, mutex_, happened);
  }

  std::vector<std::string> All() const {
    MutexLock lock(mutex_);
    return events_;
  }

  int Count(const std::string& event) const {
    MutexLock lock(mutex_);
    return static_cast<int>(std::count(events_.begin(), events_.end(), event));
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
};

class Observer : public ActionObserver {
 public:
  Observer(Events& events, std::string name) : events_(events), name_(std::move(name)) {}
  void OnQueued(const Action&, int ahead) override { events_.Add(StrCat(name_, " queued ", ahead)); }
  void OnStarted(const Action&) override { events_.Add(name_ + " started"); }
  void OnOutput(std::string_view text) override { events_.Add(StrCat(name_, " said ", text)); }

 private:
  Events& events_;
  std::string name_;
};

class ExecutorFixture {
 protected:
  ExecutorFixture() {
    env_.SetProgram("/bin/say", [](const ProcessSpec& spec, Cancellation*) {
      return absl::StatusOr<ProcessResult>(ProcessResult{.output = spec.argv.at(1)});
    });
    env_.SetProgram("/bin/fail", [](const ProcessSpec&, Cancellation*) {
      return absl::StatusOr<ProcessResult>(ProcessResult{.exit_code = 3});
    });
    // Runs until the test releases it by name or cancels it.
    env_.SetProgram("/bin/wait", [this](const ProcessSpec& spec, Cancellation* c) { return Wait(spec, *c); });
  }

  absl::StatusOr<ProcessResult> Wait(const ProcessSpec& spec, Cancellation& cancellation) {
    const std::string name = spec.argv.at(1);
    const ScopedOnCancel on_cancel(&cancellation, [&] { events_.Add("release " + name); });
    events_.WaitFor("release " + name);
    if (cancellation.cancelled()) return absl::CancelledError("cancelled");
    return ProcessResult{};
  }

  void Submit(Executor& executor, const std::string& program, const std::string& name, uint64_t memory = 0,
              CancellationPtr cancellation = nullptr, UserId user = UserId{1}) {
    SubmitFor(OneAsker(user), executor, program, name, memory, std::move(cancellation));
  }

  void SubmitFor(AskersPtr askers, Executor& executor, const std::string& program, const std::string& name,
                 uint64_t memory = 0, CancellationPtr cancellation = nullptr) {
    Action action;
    action.step = name;
    action.argv = {program, name};
    action.memory_estimate_bytes = memory;
    observers_.emplace_back(events_, name);
    threads_.Run(executor, std::move(action), std::move(askers), &observers_.back(), std::move(cancellation),
                 [this, name](const ActionEnd& end) {
                   events_.Add(end.ok() ? StrCat(name, " done ", end->exit_code)
                                        : StrCat(name, " ", v1::ErrorDetail::Kind_Name(KindOf(end.status()))));
                 });
  }

  MemEnv env_;
  Events events_;
  std::deque<Observer> observers_;
  ActionThreads threads_;
};

struct NamedExecutor {
  const char* name;
  std::unique_ptr<Executor> (*make)(Env& env);
};

// Tests that every executor must pass.
class ExecutorTest : public ExecutorFixture, public ::testing::TestWithParam<NamedExecutor> {
 protected:
  std::unique_ptr<Executor> Make() { return GetParam().make(env_); }
};

INSTANTIATE_TEST_SUITE_P(
    Executors, ExecutorTest,
    ::testing::Values(
        NamedExecutor{"Inline", [](Env& env) { return MakeInlineExecutor(env, {"/scratch"}); }},
        NamedExecutor{"Local", [](Env& env) { return MakeLocalExecutor(env, {.run = {"/scratch"}, .max_jobs = 2}); }}),
    [](const auto& test) { return test.param.name; });

TEST_P(ExecutorTest, TellsTheObserverAndThenTheResult) {
  const auto executor = Make();
  Submit(*executor, "/bin/say", "a");
  events_.WaitFor("a done 0");
  EXPECT_THAT(events_.All(), ElementsAre("a started", "a said a", "a done 0"));
}

TEST_P(ExecutorTest, AFailedCommandIsAResult) {
  const auto executor = Make();
  Submit(*executor, "/bin/fail", "a");
  events_.WaitFor("a done 3");
}

TEST_P(ExecutorTest, AMissingToolIsAnError) {
  const auto executor = Make();
  Submit(*executor, "/bin/none", "a");
  events_.WaitFor("a TOOLCHAIN");
}

TEST_P(ExecutorTest, AnExceptionIsAnErrorOfItsActionAlone) {
  env_.SetProgram("/bin/large",
                  [](const ProcessSpec&, Cancellation*) -> absl::StatusOr<ProcessResult> { throw std::bad_alloc(); });
  const auto executor = Make();
  Submit(*executor, "/bin/large", "a");
  events_.WaitFor("a RESOURCE");
  EXPECT_EQ(executor->load().running, 0);
  Submit(*executor, "/bin/say", "b");
  events_.WaitFor("b done 0");
}

TEST_P(ExecutorTest, WhatWasCancelledBeforeDoesNotRun) {
  const auto executor = Make();
  const auto cancellation = std::make_shared<Cancellation>();
  cancellation->Cancel();
  Submit(*executor, "/bin/say", "a", 0, cancellation);
  events_.WaitFor("a CANCELLED");
  EXPECT_THAT(env_.Processes(), IsEmpty());
}

TEST_P(ExecutorTest, ManyActionsAllEndOnceAndNothingIsLeft) {
  {
    const auto executor = Make();
    for (int i = 0; i < 50; ++i) Submit(*executor, "/bin/say", StrCat("a", i));
    for (int i = 0; i < 50; ++i) events_.WaitFor(StrCat("a", i, " done 0"));
    EXPECT_EQ(executor->load().running, 0);
    EXPECT_EQ(executor->load().queued, 0);
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(events_.Count(StrCat("a", i, " done 0")), 1);
  EXPECT_THAT(env_.ListDirectory("/scratch").value(), IsEmpty());
}

// Tests of the pool only.
class LocalExecutorTest : public ExecutorFixture, public ::testing::Test {
 protected:
  std::unique_ptr<Executor> Make(int jobs, uint64_t memory = 1000) {
    return MakeLocalExecutor(env_, {.run = {"/scratch"}, .max_jobs = jobs, .memory_budget_bytes = memory});
  }

  // Events of the given kind, in order.
  std::vector<std::string> Ending(const std::string& end) const {
    std::vector<std::string> found;
    for (const std::string& event : events_.All()) {
      if (event.ends_with(end)) found.push_back(event);
    }
    return found;
  }
};

TEST_F(LocalExecutorTest, RunsAsManyAsAllowedAtOnce) {
  const auto executor = Make(2);
  Submit(*executor, "/bin/wait", "a");
  Submit(*executor, "/bin/wait", "b");
  events_.WaitFor("a started");
  events_.WaitFor("b started");
  Submit(*executor, "/bin/wait", "c");
  events_.WaitFor("c queued 0");
  EXPECT_EQ(executor->load().running, 2);
  EXPECT_EQ(executor->load().queued, 1);
  events_.Add("release b");
  events_.WaitFor("c started");
  events_.Add("release a");
  events_.Add("release c");
  events_.WaitFor("c done 0");
}

TEST_F(LocalExecutorTest, TellsThePositionInTheQueueWheneverItChanges) {
  const auto executor = Make(1);
  for (const char* name : {"a", "b", "c"}) {
    Submit(*executor, "/bin/wait", name);
    if (std::string(name) == "a") events_.WaitFor("a started");
  }
  events_.WaitFor("b queued 0");
  events_.WaitFor("c queued 1");
  events_.Add("release a");
  events_.WaitFor("b started");
  events_.WaitFor("c queued 0");
  events_.Add("release b");
  events_.Add("release c");
  events_.WaitFor("c done 0");
  EXPECT_EQ(events_.Count("a queued 0"), 0);
  EXPECT_EQ(events_.Count("c queued 0"), 1);
  EXPECT_THAT(Ending(" started"), ElementsAre("a started", "b started", "c started"));
}

TEST_F(LocalExecutorTest, WaitsUntilTheMemoryIsThere) {
  const auto executor = Make(4, 100);
  Submit(*executor, "/bin/wait", "a", 60);
  events_.WaitFor("a started");
  Submit(*executor, "/bin/wait", "b", 60);
  Submit(*executor, "/bin/wait", "c", 10);  // would fit, but was submitted later
  events_.WaitFor("b queued 0");
  events_.WaitFor("c queued 1");
  events_.Add("release a");
  events_.WaitFor("b started");
  events_.WaitFor("c started");
  events_.Add("release b");
  events_.Add("release c");
}

TEST_F(LocalExecutorTest, WhatIsLargerThanTheBudgetRunsAlone) {
  const auto executor = Make(4, 100);
  Submit(*executor, "/bin/wait", "big", 500);
  events_.WaitFor("big started");
  Submit(*executor, "/bin/wait", "small", 1);
  events_.WaitFor("small queued 0");
  events_.Add("release big");
  events_.WaitFor("small started");
  events_.Add("release small");
}

TEST_F(LocalExecutorTest, CancellingTakesOutOfTheQueueAtOnce) {
  const auto executor = Make(1);
  const auto cancellation = std::make_shared<Cancellation>();
  Submit(*executor, "/bin/wait", "a");
  events_.WaitFor("a started");
  Submit(*executor, "/bin/wait", "b", 0, cancellation);
  Submit(*executor, "/bin/wait", "c");
  events_.WaitFor("c queued 1");
  cancellation->Cancel();
  events_.WaitFor("b CANCELLED");
  events_.WaitFor("c queued 0");
  EXPECT_EQ(events_.Count("b started"), 0);
  events_.Add("release a");
  events_.Add("release c");
  events_.WaitFor("c done 0");
}

TEST_F(LocalExecutorTest, DoesNotTellAllThatWaitOfEachStart) {
  constexpr int kJobs = 50;
  const auto run = [this](const Action& action, ActionObserver* observer, Cancellation* cancellation) {
    return RunAction(env_, {"/scratch"}, action, observer, cancellation);
  };
  const auto executor = MakePoolExecutor(Env::Posix(), run, 1, 0, std::chrono::hours(1));
  for (int i = 0; i < kJobs; ++i) Submit(*executor, "/bin/wait", StrCat("job", i));
  for (int i = 0; i < kJobs; ++i) {
    events_.WaitFor(StrCat("job", i, " started"));
    events_.Add(StrCat("release job", i));
  }
  events_.WaitFor(StrCat("job", kJobs - 1, " done 0"));
  int told = 0;
  for (const std::string& event : events_.All()) told += event.find(" queued ") != std::string::npos ? 1 : 0;
  EXPECT_LE(told, kJobs) << "of the 1225 positions that they had";
}

TEST_F(LocalExecutorTest, AUserWithOneActionDoesNotWaitForAllOfAnothers) {
  const auto executor = Make(1);
  Submit(*executor, "/bin/wait", "first");
  events_.WaitFor("first started");
  for (int i = 0; i < 200; ++i) Submit(*executor, "/bin/say", StrCat("many", i));
  events_.WaitFor("many199 queued 199");
  Submit(*executor, "/bin/say", "other", 0, nullptr, UserId{2});
  events_.WaitFor("other queued 0");
  events_.WaitFor("many0 queued 1");
  events_.Add("release first");
  events_.WaitFor("many199 done 0");
  const std::vector<std::string> started = Ending(" started");
  ASSERT_EQ(started.size(), 202u);
  EXPECT_EQ(started[1], "other started");
}

TEST_F(LocalExecutorTest, WhoJoinsAnActionThatWaitsGivesItAPosition) {
  const auto executor = Make(1);
  Submit(*executor, "/bin/wait", "first");
  events_.WaitFor("first started");
  for (const char* name : {"a", "b", "c"}) Submit(*executor, "/bin/say", name);
  const AskersPtr askers = OneAsker(UserId{1});
  SubmitFor(askers, *executor, "/bin/say", "shared");
  events_.WaitFor("shared queued 3");
  askers->Join({.user = UserId{2}});
  executor->AskersChanged(*askers);
  events_.WaitFor("shared queued 0");
  askers->Leave({.user = UserId{2}});
  executor->AskersChanged(*askers);
  events_.WaitFor("a queued 0");
  askers->Join({.user = UserId{2}});
  executor->AskersChanged(*askers);
  events_.Add("release first");
  events_.WaitFor("c done 0");
  EXPECT_EQ(Ending(" started").at(1), "shared started");
}

TEST_F(LocalExecutorTest, WhatDoesNotFitIsNotOvertakenByOthers) {
  const auto executor = Make(4, 100);
  Submit(*executor, "/bin/wait", "a", 60);
  events_.WaitFor("a started");
  Submit(*executor, "/bin/wait", "big", 60, nullptr, UserId{2});
  events_.WaitFor("big queued 0");
  Submit(*executor, "/bin/wait", "b", 10);
  Submit(*executor, "/bin/wait", "c", 10, nullptr, UserId{3});  // both would fit, but it is user 2's turn
  events_.WaitFor("c queued 1");
  events_.WaitFor("b queued 2");
  events_.Add("release a");
  events_.WaitFor("big started");
  for (const char* name : {"big", "b", "c"}) events_.Add(StrCat("release ", name));
}

TEST_F(LocalExecutorTest, ATurnIsWorthTheLargerShareOfThePool) {
  const auto executor = Make(4, 100);
  Submit(*executor, "/bin/wait", "large", 60);  // its memory counts as three jobs
  events_.WaitFor("large started");
  for (const char* name : {"b", "c"}) {
    Submit(*executor, "/bin/wait", name, 0, nullptr, UserId{2});
    events_.WaitFor(StrCat(name, " started"));
  }
  Submit(*executor, "/bin/wait", "d", 60);
  events_.WaitFor("d queued 0");
  Submit(*executor, "/bin/wait", "e", 0, nullptr, UserId{2});  // user 2 runs two jobs, user 1 the weight of three
  events_.WaitFor("e started");
  EXPECT_EQ(events_.Count("d started"), 0);
  for (const char* name : {"large", "b", "c", "d", "e"}) events_.Add(StrCat("release ", name));
}

TEST_F(LocalExecutorTest, CancellingEndsWhatRuns) {
  const auto executor = Make(1);
  const auto cancellation = std::make_shared<Cancellation>();
  Submit(*executor, "/bin/wait", "a", 0, cancellation);
  events_.WaitFor("a started");
  cancellation->Cancel();
  events_.WaitFor("a CANCELLED");
}

TEST_F(LocalExecutorTest, DestructionCancelsWhatRunsAndWhatIsQueued) {
  auto executor = Make(1);
  const auto others = std::make_shared<Cancellation>();  // shared with another caller's work: must not fire
  Submit(*executor, "/bin/wait", "a", 0, others);
  events_.WaitFor("a started");
  Submit(*executor, "/bin/wait", "b", 0, others);
  executor.reset();
  threads_.Join();
  EXPECT_EQ(events_.Count("a CANCELLED"), 1);
  EXPECT_EQ(events_.Count("b CANCELLED"), 1);
  EXPECT_FALSE(others->cancelled());
  EXPECT_THAT(env_.ListDirectory("/scratch").value(), IsEmpty());
}

TEST_F(LocalExecutorTest, DefaultsComeFromTheMachine) {
  ASSERT_TRUE(env_.CreateDirectories("/proc/self", 0755).ok());
  ASSERT_TRUE(env_.WriteFile("/proc/self/status", "Cpus_allowed_list:\t0-1\n", 0644).ok());
  ASSERT_TRUE(env_.WriteFile("/proc/meminfo", "MemTotal: 4096 kB\n", 0644).ok());
  const auto executor = MakeLocalExecutor(env_, {.run = {"/scratch"}});
  Submit(*executor, "/bin/wait", "a", 2u << 20);
  Submit(*executor, "/bin/wait", "b", 1u << 20);  // 3 MiB together: three quarters of the machine
  events_.WaitFor("b started");
  Submit(*executor, "/bin/wait", "c");
  events_.WaitFor("c queued 0");
  for (const char* name : {"a", "b", "c"}) events_.Add(StrCat("release ", name));
}

}  // namespace
}  // namespace kernix::exec
