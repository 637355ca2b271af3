// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/trace_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <utility>

#include "common/base/exceptions.h"
#include "common/base/utf8.h"
#include "daemon/builder/failure.h"

namespace kernix::build {
namespace {

using v1::BuildTrace;
using v1::TracedStep;

uint64_t Microseconds(MonotonicTime from, MonotonicTime to) {
  return static_cast<uint64_t>(
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(to - from).count()));
}

std::string Shortened(std::string name) {
  if (name.size() > kLongestTracedName) name.resize(CompleteUtf8Prefix(name.substr(0, kLongestTracedName)));
  return ToValidUtf8(name);
}

uint64_t Length(const TracedStep& step) { return step.waited_us() + step.took_us(); }

// Returns how many steps it has dropped.
uint32_t KeepLongest(std::vector<TracedStep>& steps) {
  if (steps.size() <= kMostTracedSteps) return 0;
  const auto end = steps.begin() + kMostTracedSteps;
  std::nth_element(steps.begin(), end, steps.end(),
                   [](const TracedStep& a, const TracedStep& b) { return Length(a) > Length(b); });
  const auto dropped = static_cast<uint32_t>(steps.end() - end);
  steps.erase(end, steps.end());
  return dropped;
}

}  // namespace

TraceRecorder::TraceRecorder(Env& env) : env_(env), began_(env.Now()), began_unix_ms_(env.UnixMillis()), lap_(began_) {}

TracedStep TraceRecorder::StepFrom(const StepTimes& times) const {
  TracedStep step;
  step.set_name(Shortened(times.name));
  step.set_how(times.way);
  step.set_begin_us(Microseconds(began_, times.ready));
  step.set_waited_us(Microseconds(times.ready, times.started));
  step.set_took_us(Microseconds(times.started, times.ended));
  step.set_peak_memory_bytes(times.peak_memory_bytes);
  return step;
}

void TraceRecorder::Add(const StepTimes& times) {
  TracedStep step = StepFrom(times);
  const MutexLock lock(mutex_);
  steps_.push_back(std::move(step));
}

void TraceRecorder::Lap(const std::string& name) {
  const MonotonicTime now = env_.Now();
  const MutexLock lock(mutex_);
  const MonotonicTime before = std::exchange(lap_, now);
  steps_.push_back(StepFrom({name, v1::TracedStep::DAEMON, before, before, now}));
}

void TraceRecorder::Skip() {
  const MutexLock lock(mutex_);
  lap_ = env_.Now();
}

BuildTrace TraceRecorder::Trace() const {
  BuildTrace trace;
  trace.set_began_unix_ms(began_unix_ms_);
  trace.set_total_us(Microseconds(began_, env_.Now()));
  std::vector<TracedStep> steps;
  {
    const MutexLock lock(mutex_);
    steps = steps_;
  }
  trace.set_left_out(KeepLongest(steps));
  std::stable_sort(steps.begin(), steps.end(),
                   [](const TracedStep& a, const TracedStep& b) { return a.begin_us() < b.begin_us(); });
  for (TracedStep& step : steps) *trace.add_step() = std::move(step);
  return trace;
}

// --- Each step

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
                               const CancellationPtr& cancellation, bool muted) {
  const MonotonicTime submitted = env_.Now();
  command_started_.reset();
  MutedStep without_words(this);
  exec::ActionObserver* const observer = muted ? static_cast<exec::ActionObserver*>(&without_words) : this;
  exec::ActionEnd end = executor.Run(action, askers, observer, cancellation);
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
