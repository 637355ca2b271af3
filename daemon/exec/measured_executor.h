// SPDX-License-Identifier: Apache-2.0
//
// An executor that measures another one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/metrics.h"
#include "daemon/exec/executor.h"

namespace kernix::exec {

inline constexpr std::string_view kOtherSteps = "other";

// The kind under which a step of this name is measured: "compile" for "compile a.cu". kOtherSteps for an unknown one.
std::string_view KindOfStep(std::string_view step);

class MeasuredExecutor final : public Executor {
 public:
  // `env` (the clock) and `registry` must outlive it.
  MeasuredExecutor(Env& env, std::unique_ptr<Executor> executor);

  // Must be called before the first Run(). The registry must not be read after this object is destroyed. `labels` tell
  // several executors apart.
  void Register(MetricsRegistry& registry, const MetricsRegistry::Labels& labels = {}) const;

  ActionEnd Run(const Action& action, const AskersPtr& askers, ActionObserver* observer,
                const CancellationPtr& cancellation) override;
  void AskersChanged(const Askers& askers) override { executor_->AskersChanged(askers); }
  ExecutorLoad load() const override { return executor_->load(); }

 private:
  class Waiting;

  struct Times {
    MetricHistogram wall;
    MetricHistogram processor;
  };

  Times& OfStep(std::string_view step);

  Env& env_;
  MetricHistogram queue_waits_;
  std::map<std::string, Times, std::less<>> steps_;  // by kind; constant after construction
  const std::unique_ptr<Executor> executor_;         // destroyed first: it uses the above
};

}  // namespace kernix::exec
