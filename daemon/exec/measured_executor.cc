// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/measured_executor.h"

#include <chrono>
#include <optional>
#include <utility>

#include "common/base/error.h"

namespace kernix::exec {
namespace {

double Seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

// The values of Action::step, without what they are about (a unit, an architecture). A test of the plans checks that
// each of their steps is among them.
constexpr const char* kKinds[] = {"compile",     "link",      "device link",  "ptx",    "machine code",
                                  "disassemble", "dry run",   "preprocess",   "cicc",   "cudafe++",
                                  "ptxas",       "fatbinary", "host compile", "handler"};

bool IsOfKind(std::string_view step, std::string_view kind) {
  return step.substr(0, kind.size()) == kind && (step.size() == kind.size() || step[kind.size()] == ' ');
}

}  // namespace

std::string_view KindOfStep(std::string_view step) {
  for (const std::string_view kind : kKinds) {
    if (IsOfKind(step, kind)) return kind;
  }
  return kOtherSteps;
}

// Sits between the executor and the action's own observer, which may be null.
class MeasuredExecutor::Waiting final : public ActionObserver {
 public:
  Waiting(MeasuredExecutor& executor, ActionObserver* observer)
      : ActionObserver(observer), executor_(executor), since_(executor.env_.Now()) {}

  void OnStarted(const Action& action) override {
    started_ = executor_.env_.Now();
    executor_.queue_waits_.Observe(Seconds(*started_ - since_));
    ActionObserver::OnStarted(action);
  }

  // Nothing if the command did not run. An error does not say how long it ran: until now, then.
  std::optional<double> SecondsOfCommand(const absl::StatusOr<ActionResult>& result) const {
    if (result.ok()) return Seconds(result->wall);
    const ErrorKind kind = KindOf(result.status());
    const bool was_stopped = kind == v1::ErrorDetail::RESOURCE || kind == v1::ErrorDetail::CANCELLED;
    if (!started_ || !was_stopped) return std::nullopt;
    return Seconds(executor_.env_.Now() - *started_);
  }

 private:
  MeasuredExecutor& executor_;
  const MonotonicTime since_;
  std::optional<MonotonicTime> started_;
};

MeasuredExecutor::MeasuredExecutor(Env& env, std::unique_ptr<Executor> executor)
    : env_(env), executor_(std::move(executor)) {
  for (const char* kind : kKinds) steps_.try_emplace(kind);
  steps_.try_emplace(std::string(kOtherSteps));
}

void MeasuredExecutor::Register(MetricsRegistry& registry, const MetricsRegistry::Labels& labels) const {
  registry.AddHistogram("kernix_queue_wait_seconds", "From a step's submission to the start of its command.",
                        queue_waits_, labels);
  for (const auto& [kind, times] : steps_) {
    MetricsRegistry::Labels of_kind = labels;
    of_kind.emplace_back("step", kind);
    registry.AddHistogram("kernix_step_seconds", "How long a step's command ran, failures included.", times.wall,
                          of_kind);
    registry.AddHistogram("kernix_step_processor_seconds", "Processor time of a step's command.", times.processor,
                          of_kind);
  }
  registry.AddGauge(
      "kernix_steps_running", "Steps that run now.", [this] { return load().running; }, labels);
  registry.AddGauge(
      "kernix_steps_queued", "Steps that wait for the pool now.", [this] { return load().queued; }, labels);
}

ActionEnd MeasuredExecutor::Run(const Action& action, const AskersPtr& askers, ActionObserver* observer,
                                const CancellationPtr& cancellation) {
  Waiting waiting(*this, observer);
  ActionEnd end = executor_->Run(action, askers, &waiting, cancellation);
  Times& times = OfStep(action.step);
  if (const auto seconds = waiting.SecondsOfCommand(end)) times.wall.Observe(*seconds);
  if (end.ok() && end->processor.count() > 0) times.processor.Observe(Seconds(end->processor));
  return end;
}

MeasuredExecutor::Times& MeasuredExecutor::OfStep(std::string_view step) {
  return steps_.find(KindOfStep(step))->second;
}

}  // namespace kernix::exec
