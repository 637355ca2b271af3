// SPDX-License-Identifier: Apache-2.0
//
// How long a step has waited and run, and who is told of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/base/exceptions.h"
#include "common/os/env.h"
#include "daemon/cache/entry.h"
#include "daemon/exec/action.h"
#include "daemon/plan/plan.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// The times of a step that has ended.
struct StepTimes {
  std::string name;
  StepKind kind = StepKind::kOther;
  v1::TracedStep::How way = v1::TracedStep::RUN;
  MonotonicTime ready;    // its inputs were there
  MonotonicTime started;  // its command, with staged inputs; if none ran: when the search for another result began
  MonotonicTime ended;
  uint64_t peak_memory_bytes = 0;  // see exec::ActionResult; 0 also if no command ran
};

// Receives the events of one step. Called as an ActionObserver is; with phases, for several actions, also concurrently.
class StepObserver : public exec::ActionObserver {
 public:
  // The step has ended, or one of its phases has, well or not. Not called for what never began.
  virtual void OnStepEnded(const StepTimes&) {}
};

// Passes on the times, and nothing else: for what users should not see happen.
class QuietStep final : public StepObserver {
 public:
  // `observer` may be null, and must outlive this one.
  explicit QuietStep(StepObserver* observer) : observer_(observer) {}
  void OnStepEnded(const StepTimes& times) override {
    if (observer_ != nullptr) observer_->OnStepEnded(times);
  }

 private:
  StepObserver* const observer_;
};

// Passes on everything but what the command prints.
class MutedStep final : public StepObserver {
 public:
  // `observer` may be null, and must outlive this one.
  explicit MutedStep(StepObserver* observer) : observer_(observer) {}
  void OnQueued(int actions_ahead) override {
    if (observer_ != nullptr) observer_->OnQueued(actions_ahead);
  }
  void OnStarted(const exec::Action& action) override {
    if (observer_ != nullptr) observer_->OnStarted(action);
  }
  void OnStepEnded(const StepTimes& times) override {
    if (observer_ != nullptr) observer_->OnStepEnded(times);
  }

 private:
  StepObserver* const observer_;
};

// Measures one step, from now on. Sits between the executor and the step's observer.
class TimedStep final : public exec::ActionObserver {
 public:
  // `observer` may be null, and must outlive the step. So must `env`.
  TimedStep(Env& env, std::string name, StepKind kind, StepObserver* observer)
      : env_(env), observer_(observer), name_(std::move(name)), kind_(kind), ready_(env.Now()) {}

  void OnQueued(int actions_ahead) override {
    if (observer_ != nullptr) observer_->OnQueued(actions_ahead);
  }
  void OnStarted(const exec::Action& action) override {
    started_ = env_.Now();
    if (observer_ != nullptr) observer_->OnStarted(action);
  }
  void OnOutput(std::string_view text) override {
    if (observer_ != nullptr) observer_->OnOutput(text);
  }

  // No command has run: the result is another one's.
  void TakesResult(v1::TracedStep::How way) {
    way_ = way;
    started_ = ready_;
  }

  // Tells the observer. Must be called once, before the end of the step is known. Does not throw: without memory for
  // them, the times are not told.
  void End(const absl::StatusOr<exec::ActionResult>& result) {
    if (observer_ == nullptr || !started_) return;
    if (result.ok() && result->ran_on_worker && way_ == v1::TracedStep::RUN) way_ = v1::TracedStep::REMOTE;
    IgnoreExceptions("not told", [&] {
      const uint64_t peak = result.ok() && way_ == v1::TracedStep::RUN ? result->peak_memory_bytes : 0;
      observer_->OnStepEnded({name_, kind_, way_, ready_, *started_, env_.Now(), peak});
    });
  }

 private:
  Env& env_;
  StepObserver* const observer_;
  const std::string name_;
  const StepKind kind_;
  const MonotonicTime ready_;
  v1::TracedStep::How way_ = v1::TracedStep::RUN;
  std::optional<MonotonicTime> started_;
};

}  // namespace kernix::build
