// SPDX-License-Identifier: Apache-2.0
//
// How long a step has waited and run: for the trace of its build, and for the metrics of all steps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/metrics.h"
#include "common/os/env.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// Of all steps of one runner. Thread-safe.
class StepMetrics {
 public:
  StepMetrics();

  // The times of a command: when the executor got it, when it began to run, and now that it has ended.
  void Observe(StepKind kind, MonotonicTime submitted, MonotonicTime started, MonotonicTime ended,
               const exec::ActionEnd& end);

  // Must be called before the first step. `labels` tell several runners apart.
  void Register(MetricsRegistry& registry, const MetricsRegistry::Labels& labels) const;

 private:
  struct Times {
    MetricHistogram wall;
    MetricHistogram processor;
  };

  MetricHistogram queue_waits_;
  std::map<std::string_view, Times> steps_;  // by the names of kinds; constant after construction
};

// Passes on everything but what the command prints.
class MutedStep final : public exec::ActionObserver {
 public:
  using ActionObserver::ActionObserver;
  void OnOutput(std::string_view) override {}
};

// Measures one step, from now on, and each of its commands: a faster one may have been tried first. Sits between the
// executor and the step's observer.
class TimedStep final : public exec::ActionObserver {
 public:
  // All must outlive it. `observer` and `trace` may be null.
  TimedStep(Env& env, StepMetrics& metrics, std::string name, StepKind kind, exec::ActionObserver* observer,
            TraceRecorder* trace)
      : ActionObserver(observer),
        env_(env),
        metrics_(metrics),
        name_(std::move(name)),
        kind_(kind),
        trace_(trace),
        ready_(env.Now()) {}

  // Runs a command of the step, and counts it.
  exec::ActionEnd Run(exec::Executor& executor, const exec::Action& action, const exec::AskersPtr& askers,
                      const CancellationPtr& cancellation);

  void OnStarted(const exec::Action& action) override {
    started_ = command_started_ = env_.Now();
    ActionObserver::OnStarted(action);
  }

  // No command has run: the result is another one's.
  void TakesResult(v1::TracedStep::How way) {
    way_ = way;
    started_ = ready_;
  }

  // Must be called once, before the end of the step is known. Does not throw: without memory for them, the times are
  // lost.
  void End(const exec::ActionEnd& end);

 private:
  Env& env_;
  StepMetrics& metrics_;
  const std::string name_;
  const StepKind kind_;
  TraceRecorder* const trace_;
  const MonotonicTime ready_;
  v1::TracedStep::How way_ = v1::TracedStep::RUN;
  std::optional<MonotonicTime> started_;
  std::optional<MonotonicTime> command_started_;
};

}  // namespace kernix::build
