// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a build goes: how long its steps have waited and run, also for the metrics of all steps, and the
// daemon's own work before and after them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/cache/entry.h"
#include "daemon/exec/executor.h"
#include "daemon/plan/plan.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// The times of a step that has ended.
struct StepTimes {
  std::string name;
  v1::TracedStep::How way = v1::TracedStep::RUN;
  MonotonicTime ready;    // its inputs were there
  MonotonicTime started;  // its command, with staged inputs; if none ran: when the search for another result began
  MonotonicTime ended;
  uint64_t peak_memory_bytes = 0;  // see exec::ActionResult; 0 also if no command ran
};

// The bounds of a trace. Of more steps, those that took longest are kept; of a longer name, the beginning.
inline constexpr size_t kMostTracedSteps = 1000;
inline constexpr size_t kLongestTracedName = 120;  // bytes

// Thread-safe. The build begins when the recorder is made.
class TraceRecorder {
 public:
  explicit TraceRecorder(Env& env);

  void Add(const StepTimes& times);

  // The daemon's own work: everything since the last call of Lap() or Skip(), or since the beginning.
  void Lap(const std::string& name);
  // The time since then is not the daemon's own work.
  void Skip();

  // The trace until now.
  v1::BuildTrace Trace() const;

 private:
  v1::TracedStep StepFrom(const StepTimes& times) const;

  Env& env_;
  const MonotonicTime began_;
  const int64_t began_unix_ms_;
  mutable Mutex mutex_;
  MonotonicTime lap_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::TracedStep> steps_ ABSL_GUARDED_BY(mutex_);
};

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

  // Runs a command of the step, and counts it. `muted`: the step's observer does not hear what it prints.
  exec::ActionEnd Run(exec::Executor& executor, const exec::Action& action, const exec::AskersPtr& askers,
                      const CancellationPtr& cancellation, bool muted = false);

  void OnStarted(const exec::Action& action) override {
    command_started_ = env_.Now();
    if (!started_) started_ = command_started_;
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
  std::optional<MonotonicTime> started_;  // the first command
  std::optional<MonotonicTime> command_started_;
};

}  // namespace kernix::build
