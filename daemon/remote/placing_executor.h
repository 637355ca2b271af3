// SPDX-License-Identifier: Apache-2.0
//
// Decides for each action whether it runs on this machine or on the workers of an engine.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/exec/executor.h"
#include "daemon/remote/circuit_breaker.h"

namespace kernix::remote {

struct PlacingOptions {
  exec::Placements placements;
  // With Placement::kOverflow: an action that is expected to wait here for longer, and at least as long as for a
  // worker, runs on a worker.
  Duration overflow_after{0};
};

// How long an executor's actions would wait, from the times of its earlier ones. Thread-safe.
class WaitEstimate {
 public:
  // The expected time of a step while none of its kind of work has ended there.
  static constexpr Duration kFirstGuess = std::chrono::seconds(1);

  explicit WaitEstimate(int max_jobs) : max_jobs_(max_jobs) {}

  // An action that waits or runs.
  struct Entry {
    exec::Work work;
    Duration cost{0};  // expected time
  };

  Entry Enter(const exec::Action& action);
  // `result`: how it has ended.
  void Leave(const Entry& entry, const absl::StatusOr<exec::ActionResult>& result);

  // How long an action would wait if it came now. Takes into account jobs, but not memory.
  Duration Wait() const;

 private:
  const int max_jobs_;
  mutable Mutex mutex_;
  int jobs_ ABSL_GUARDED_BY(mutex_) = 0;
  Duration cost_ ABSL_GUARDED_BY(mutex_){0};
  std::map<exec::Work, Duration> expected_ ABSL_GUARDED_BY(mutex_);
};

// An action that needs a worker has the placement kRemote, whatever the options say.
//
// An action that a worker cannot run (CheckRunsRemotely) runs here, unless its placement is kRemote. So does an action
// that failed because of the engine, not of its own command: its observer then hears again that it waits and starts.
// The log has one line when that begins, and one when workers work again. With kRemote, such an error is a RESOURCE
// error that says so.
//
// If no worker has taken an action (IsNoWorker()), the pause begins: actions that may run here do, except for probes.
//
// A command that fails on a worker runs here, too, and its outcome here counts: the worker may lack the tool, and no
// exit code proves that. If it succeeds here, the log has one line for each kind of work. With kRemote, the failure is
// the command's own, or a RESOURCE error if the worker seems to lack the tool. An observer hears the output of the run
// that counts. Thread-safe.
class PlacingExecutor final : public exec::Executor {
 public:
  // `pause` must outlive it.
  PlacingExecutor(std::unique_ptr<exec::Executor> local, std::unique_ptr<exec::Executor> remote,
                  const PlacingOptions& options, WorkerPause& pause);

  // Must be called before the first Run(). The registry must not be read after this object is destroyed.
  void Register(MetricsRegistry& registry) const;

  exec::ActionEnd Run(const exec::Action& action, const exec::AskersPtr& askers, exec::ActionObserver* observer,
                      const CancellationPtr& cancellation) override;

  void AskersChanged(const exec::Askers& askers) override;

  // Running and queued actions of both executors, with the limits of this machine.
  exec::ExecutorLoad load() const override;

 private:
  // What an executor is given.
  struct Job {
    const exec::Action& action;
    const exec::AskersPtr& askers;
    exec::ActionObserver* observer;
    const CancellationPtr& cancellation;
  };

  exec::Placement PlacementOf(const exec::Action& action) const;
  bool RunsThere(const exec::Action& action);
  bool FlowsOver() const;
  exec::ActionEnd RunHere(const Job& job);
  // Runs there, or fails.
  exec::ActionEnd RunOnlyThere(const Job& job);
  // Runs there, or here.
  exec::ActionEnd TryThere(const Job& job, bool is_probe);
  exec::ActionEnd SendThere(exec::Action action, const Job& job);
  void NoteFallBack(const exec::Action& action, const absl::Status& why);
  void NoteDifference(const exec::Action& action, const exec::ActionResult& there);

  const PlacingOptions options_;
  WorkerPause& pause_;
  CounterFamily placed_{"kernix_placed_steps_total",
                        "Steps given to this machine, or to the workers of the upstream.",
                        "place",
                        {"local", "remote"}};
  CounterFamily run_here_instead_{
      "kernix_steps_run_here_instead_total",
      "Steps that ran here instead of on a worker: the engine failed them, no worker took earlier ones, their command "
      "failed there, or no worker can run them.",
      "why",
      {"engine", "pause", "command", "step"}};
  MetricCounter failed_there_alone_;
  std::atomic<bool> falling_back_ = false;
  Mutex mutex_;
  std::set<exec::Work> warned_of_ ABSL_GUARDED_BY(mutex_);  // what has failed there alone
  WaitEstimate here_wait_;
  WaitEstimate there_wait_;
  const std::unique_ptr<exec::Executor> local_;
  const std::unique_ptr<exec::Executor> remote_;  // destroyed first
};

}  // namespace kernix::remote
