// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_times.h"

#include <chrono>
#include <iterator>

#include "common/base/exceptions.h"
#include "daemon/builder/failure.h"

namespace kernix::build {
namespace {

// By StepKind.
constexpr std::string_view kNames[] = {"other", "compile", "compile",      "preprocess", "cudafe++",
                                       "cicc",  "ptxas",   "host compile", "link",       "link"};
static_assert(std::size(kNames) == static_cast<size_t>(StepKind::kPlainLink) + 1);

double Seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

StepMetrics::StepMetrics() {
  for (const std::string_view name : kNames) steps_.try_emplace(name);
}

void StepMetrics::Observe(StepKind kind, MonotonicTime submitted, MonotonicTime started, MonotonicTime ended,
                          const exec::ActionEnd& end) {
  // A command that could not run has no times. One that was stopped ran until now.
  if (!end.ok() && !WouldEndAgain(end.status())) return;
  Times& of_kind = steps_.at(kNames[static_cast<size_t>(kind)]);
  queue_waits_.Observe(Seconds(started - submitted));
  of_kind.wall.Observe(Seconds(end.ok() ? end->wall : ended - started));
  if (end.ok() && end->processor.count() > 0) of_kind.processor.Observe(Seconds(end->processor));
}

void StepMetrics::Register(MetricsRegistry& registry, const MetricsRegistry::Labels& labels) const {
  registry.AddHistogram("kernix_queue_wait_seconds", "From a step's submission to the start of its command.",
                        queue_waits_, labels);
  for (const auto& [name, times] : steps_) {
    MetricsRegistry::Labels of_kind = labels;
    of_kind.emplace_back("step", name);
    registry.AddHistogram("kernix_step_seconds", "How long a step's command ran, failures included.", times.wall,
                          of_kind);
    registry.AddHistogram("kernix_step_processor_seconds", "Processor time of a step's command.", times.processor,
                          of_kind);
  }
}

exec::ActionEnd TimedStep::Run(exec::Executor& executor, const exec::Action& action, const exec::AskersPtr& askers,
                               const CancellationPtr& cancellation) {
  const MonotonicTime submitted = env_.Now();
  command_started_.reset();
  exec::ActionEnd end = executor.Run(action, askers, this, cancellation);
  if (command_started_) metrics_.Observe(kind_, submitted, *command_started_, env_.Now(), end);
  return end;
}

void TimedStep::End(const exec::ActionEnd& end) {
  if (!started_ || trace_ == nullptr) return;
  IgnoreExceptions("not told", [&] {
    StepTimes times{name_, way_, ready_, *started_, env_.Now()};
    if (way_ == v1::TracedStep::RUN && end.ok()) {
      times.way = end->ran_on_worker ? v1::TracedStep::REMOTE : v1::TracedStep::RUN;
      if (!end->ran_on_worker) times.peak_memory_bytes = end->peak_memory_bytes;
    }
    trace_->Add(times);
  });
}

}  // namespace kernix::build
