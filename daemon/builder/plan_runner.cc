// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/plan_runner.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "daemon/builder/failure.h"
#include "daemon/plan/tool_places.h"

namespace kernix::build {
namespace {

exec::Content LinesWithout(const std::string& unwanted, std::string_view text) {
  if (unwanted.empty()) return std::make_shared<const std::string>(text);
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    if (line.find(unwanted) == std::string_view::npos) kept += line;
    text.remove_prefix(line.size());
  }
  return std::make_shared<const std::string>(std::move(kept));
}

// How many steps need no other one. At least 1.
size_t StepsThatStart(const Plan& plan) {
  const auto starts = [](const Step& step) { return step.inputs_from_steps.empty(); };
  return std::max<size_t>(std::count_if(plan.steps.begin(), plan.steps.end(), starts), 1);
}

constexpr char kNotHandled[] = "kernixd could not run this load's steps";

// Lives as long as the executor has one of its steps: each `done` callback holds a reference. An exception, as for the
// lack of memory, is a failure of the run, since those who wait for the run must learn of its end.
class PlanRun : public std::enable_shared_from_this<PlanRun> {
 public:
  PlanRun(Plan plan, exec::AskersPtr askers, StepRunner& runner, CancellationPtr cancellation, PlanObserver& observer,
          PlanDone done, std::shared_ptr<EarlyRuns> early, LookBudgetPtr looks, size_t share)
      : askers_(std::move(askers)),
        toolchain_(std::move(plan.toolchain)),
        takes_shortcuts_(plan.take_shortcuts),
        runner_(runner),
        max_output_bytes_(plan.max_output_bytes),
        early_(std::move(early)),
        looks_(std::move(looks)),
        share_(share),
        share_of_step_(share * StepsThatStart(plan)),
        asked_to_stop_(std::move(cancellation)),
        observer_(observer),
        done_(std::move(done)) {
    on_asked_to_stop_ = asked_to_stop_->OnCancel([stop = stop_] { stop->Cancel(); });
    printed_.resize(plan.steps.size());
    for (Step& step : plan.steps) {
      waiting_.push_back(std::make_shared<StepRun>(std::move(step), waiting_.size(), observer_));
    }
  }

  ~PlanRun() { asked_to_stop_->Remove(on_asked_to_stop_); }

  // Submits the steps that can run. Ends the run when no step can run and none is running.
  void Advance() {
    std::vector<StepRunPtr> ready;
    bool ended = false;
    const absl::Status taken = CatchExceptions(kNotHandled, [&] {
      ended = TakeReady(ready);
      return absl::OkStatus();
    });
    if (!taken.ok()) ended = Fail(taken);
    // Without the lock: an inline executor runs the step, and calls back here, before Submit() returns.
    for (const StepRunPtr& run : ready) Submit(run);
    if (ended) done_(End());
  }

 private:
  // One step, and the observer of its action.
  struct StepRun : StepObserver {
    StepRun(Step s, size_t n, PlanObserver& o) : step(std::move(s)), number(n), observer(o) {}
    void OnQueued(int actions_ahead) override { observer.OnQueued(step.action.step, actions_ahead); }
    void OnStarted(const exec::Action& action) override { observer.OnStarted(action); }
    // In whole lines, so that no path is cut in two.
    void OnOutput(std::string_view text) override {
      unfinished += text;
      const size_t end = unfinished.rfind('\n') + 1;
      Show(std::string_view(unfinished).substr(0, end));
      unfinished.erase(0, end);
    }
    void OnStepEnded(const StepTimes& times) override { observer.OnStepEnded(times); }
    void OnEnded() { Show(std::exchange(unfinished, "")); }
    void Show(std::string_view lines) {
      if (!lines.empty()) observer.OnOutput(WithUsersNames(lines, step.action.links));
    }

    Step step;
    const size_t number;  // in the plan
    PlanObserver& observer;
    std::string unfinished;  // line
  };
  using StepRunPtr = std::shared_ptr<StepRun>;

  bool IsReady(const StepRun& run) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const std::string& path : run.step.inputs_from_steps) {
      if (end_.outputs.count(path) == 0) return false;
    }
    return true;
  }

  // Most steps to run at a time.
  size_t MaxParallel() const {
    const size_t wanted = askers_->max_parallel();
    return wanted == 0 ? SIZE_MAX : std::max<size_t>(wanted / share_, 1);
  }

  // Adds the steps to submit, which count as running from now on. Returns whether this ends the run.
  bool TakeReady(std::vector<StepRunPtr>& ready) {
    const size_t max_parallel = MaxParallel();
    const MutexLock lock(mutex_);
    for (auto run = waiting_.begin(); run != waiting_.end() && end_.status.ok() && running_ < max_parallel;) {
      if (!IsReady(**run)) {
        ++run;
        continue;
      }
      for (const std::string& path : (*run)->step.inputs_from_steps) {
        (*run)->step.action.inputs.push_back(exec::MakeInput(path, end_.outputs[path]));
      }
      ready.push_back(*run);
      run = waiting_.erase(run);
      ++running_;
    }
    return Ends();
  }

  // The same for a run that has failed.
  bool Fail(const absl::Status& status) {
    stop_->Cancel();
    const MutexLock lock(mutex_);
    if (end_.status.ok()) end_.status = status;
    return Ends();
  }

  bool Ends() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ == 0 && !std::exchange(ended_, true); }

  void Submit(const StepRunPtr& run) {
    const absl::Status submitted = CatchExceptions(kNotHandled, [&] {
      runner_.Submit(run->step, {.askers = askers_,
                                 .toolchain = toolchain_,
                                 .max_output_bytes = max_output_bytes_,
                                 .take_shortcuts = takes_shortcuts_,
                                 .share = share_of_step_,
                                 .early = early_,
                                 .looks = looks_,
                                 .observer = run.get(),
                                 .cancellation = stop_,
                                 .done = [self = shared_from_this(), run](absl::StatusOr<exec::ActionResult> result) {
                                   self->OnDone(*run, std::move(result));
                                 }});
      return absl::OkStatus();
    });
    if (!submitted.ok()) OnDone(*run, submitted);
  }

  void OnDone(StepRun& run, absl::StatusOr<exec::ActionResult> result) {
    const int done = Settle(run, std::move(result));
    if (done > 0) observer_.OnStepDone(done);
    if (done == 0) stop_->Cancel();
    Advance();
  }

  // Records the result of a step. Returns the number of steps done so far, 0 if the run has failed.
  int Settle(StepRun& run, absl::StatusOr<exec::ActionResult> result) {
    const absl::Status recorded = CatchExceptions(kNotHandled, [&] {
      Record(run, result);
      return absl::OkStatus();
    });
    const MutexLock lock(mutex_);
    --running_;
    if (end_.status.ok()) end_.status = recorded;
    return end_.status.ok() ? ++steps_done_ : 0;
  }

  void Record(StepRun& run, absl::StatusOr<exec::ActionResult>& result) {
    run.OnEnded();
    absl::Status status = result.status();
    const bool said_no = status.ok() && result->exit_code != 0;
    if (said_no) status = StepFailure(run.step.action, *result);
    const MutexLock lock(mutex_);
    if (said_no && end_.status.ok()) end_.failed = std::make_shared<const Step>(run.step);
    if (end_.status.ok()) end_.status = std::move(status);
    if (end_.status.ok()) end_.status = CheckSize(*result);
    if (!end_.status.ok()) return;
    for (auto& [path, content] : result->outputs) end_.outputs[path] = std::move(content);
    const Printed& printed = run.step.printed;
    if (printed.path.empty()) {
      printed_[run.number] = WithUsersNames(result->output, run.step.action.links);
    } else {
      end_.outputs[printed.path] = LinesWithout(printed.without, result->output);
    }
  }

  absl::Status CheckSize(const exec::ActionResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const auto& [path, content] : result.outputs) output_bytes_ += content->size();
    if (max_output_bytes_ == 0 || output_bytes_ <= max_output_bytes_) return absl::OkStatus();
    return MakeError(v1::ErrorDetail::RESOURCE,
                     StrCat("the outputs of this load's steps have more than ", max_output_bytes_,
                            " bytes together, the limit derived from this kernixd's max_output_bytes: raise it "
                            "(--max-output-bytes, KERNIX_MAX_OUTPUT_BYTES), or put fewer sources into one load"));
  }

  PlanEnd End() {
    const MutexLock lock(mutex_);
    if (end_.status.ok() && !waiting_.empty()) {
      end_.status = MakeError(v1::ErrorDetail::INTERNAL, StrCat("step \"", waiting_.front()->step.action.step,
                                                                "\" needs a file that no other step makes"));
    }
    for (const std::string& printed : printed_) end_.printed += printed;
    return std::move(end_);
  }

  const exec::AskersPtr askers_;
  const toolchain::ToolchainPtr toolchain_;
  const bool takes_shortcuts_;
  StepRunner& runner_;
  const uint64_t max_output_bytes_;
  const std::shared_ptr<EarlyRuns> early_;
  const LookBudgetPtr looks_;
  const size_t share_;
  const size_t share_of_step_;  // so that all steps together keep to what the askers want
  const CancellationPtr asked_to_stop_;
  int on_asked_to_stop_ = 0;
  const CancellationPtr stop_ = std::make_shared<Cancellation>();  // cancels the steps
  PlanObserver& observer_;
  const PlanDone done_;

  Mutex mutex_;
  std::vector<StepRunPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> printed_ ABSL_GUARDED_BY(mutex_);  // by step
  PlanEnd end_ ABSL_GUARDED_BY(mutex_);
  uint64_t output_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  int steps_done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

void RunPlan(Plan plan, exec::AskersPtr askers, StepRunner& runner, CancellationPtr cancellation,
             PlanObserver& observer, PlanDone done, std::shared_ptr<EarlyRuns> early, LookBudgetPtr looks,
             size_t share) {
  std::make_shared<PlanRun>(std::move(plan), std::move(askers), runner, std::move(cancellation), observer,
                            std::move(done), std::move(early), std::move(looks), share)
      ->Advance();
}

}  // namespace kernix::build
