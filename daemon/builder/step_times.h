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
// `next` may be null, and must outlive this one.
class StepObserver : public exec::ActionObserver {
 public:
  explicit StepObserver(StepObserver* next = nullptr) : ActionObserver(next), next_(next) {}

  // The step has ended, or one of its phases has, well or not. Not called for what never began.
  virtual void OnStepEnded(const StepTimes& times) {
    if (next_ != nullptr) next_->OnStepEnded(times);
  }

 private:
  StepObserver* const next_;
};

// Passes on everything but what the command prints.
class MutedStep : public StepObserver {
 public:
  using StepObserver::StepObserver;
  void OnOutput(std::string_view) override {}
};

// Passes on the times, and nothing else: for what users should not see happen.
class QuietStep final : public MutedStep {
 public:
  using MutedStep::MutedStep;
  void OnQueued(int) override {}
  void OnStarted(const exec::Action&) override {}
};

// Measures one step, from now on. Sits between the executor and the step's observer.
class TimedStep final : public StepObserver {
 public:
  // `env` must outlive it.
  TimedStep(Env& env, std::string name, StepKind kind, StepObserver* observer)
      : StepObserver(observer), env_(env), name_(std::move(name)), kind_(kind), ready_(env.Now()) {}

  void OnStarted(const exec::Action& action) override {
    started_ = env_.Now();
    StepObserver::OnStarted(action);
  }

  // No command has run: the result is another one's.
  void TakesResult(v1::TracedStep::How way) {
    way_ = way;
    started_ = ready_;
  }

  // Tells the observer. Must be called once, before the end of the step is known. Does not throw: without memory for
  // them, the times are not told.
  void End(const absl::StatusOr<exec::ActionResult>& result) {
    if (!started_) return;
    if (result.ok() && result->ran_on_worker && way_ == v1::TracedStep::RUN) way_ = v1::TracedStep::REMOTE;
    IgnoreExceptions("not told", [&] {
      const uint64_t peak = result.ok() && way_ == v1::TracedStep::RUN ? result->peak_memory_bytes : 0;
      OnStepEnded({name_, kind_, way_, ready_, *started_, env_.Now(), peak});
    });
  }

 private:
  Env& env_;
  const std::string name_;
  const StepKind kind_;
  const MonotonicTime ready_;
  v1::TracedStep::How way_ = v1::TracedStep::RUN;
  std::optional<MonotonicTime> started_;
};

}  // namespace kernix::build
