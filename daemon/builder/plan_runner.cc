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
#include "common/base/output_buffer.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/failure.h"
#include "daemon/plan/tool_places.h"

namespace kernix::build {
namespace {

std::string LinesWithout(const std::string& unwanted, std::string_view text) {
  if (unwanted.empty()) return std::string(text);
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    if (line.find(unwanted) == std::string_view::npos) kept += line;
    text.remove_prefix(line.size());
  }
  return kept;
}

// How many steps need no other one. At least 1.
size_t StepsThatStart(const Plan& plan) {
  const auto starts = [](const Step& step) { return step.inputs_from_steps.empty(); };
  return std::max<size_t>(std::count_if(plan.steps.begin(), plan.steps.end(), starts), 1);
}

constexpr size_t kMostPrinted = 8 << 20;

constexpr char kNotHandled[] = "kernixd could not run this load's steps";

// Lives as long as the executor has one of its steps: each `done` callback holds a reference. An exception, as for the
// lack of memory, is a failure of the run, since those who wait for the run must learn of its end.
class PlanRun : public std::enable_shared_from_this<PlanRun> {
 public:
  PlanRun(Plan plan, exec::AskersPtr askers, StepRunner& runner, CancellationPtr cancellation, PlanObserver& observer,
          PlanDone done, LookBudgetPtr looks, HeldOutputsPtr outputs, size_t share)
      : askers_(std::move(askers)),
        toolchain_(std::move(plan.toolchain)),
        mode_(plan.mode),
        runner_(runner),
        looks_(std::move(looks)),
        outputs_(std::move(outputs)),
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
                                 .mode = mode_,
                                 .share = share_of_step_,
                                 .looks = looks_,
                                 .outputs = outputs_,
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
    std::shared_ptr<const Step> failed;
    PlanOutputs made;
    const absl::Status status = CatchExceptions(kNotHandled, [&] {
      run.OnEnded();
      if (result.ok() && result->exit_code != 0) failed = std::make_shared<const Step>(run.step);
      return Take(run.step, std::move(result), made);
    });
    const MutexLock lock(mutex_);
    --running_;
    if (end_.status.ok() && !status.ok()) {
      end_.status = status;
      end_.failed = std::move(failed);
    }
    if (!end_.status.ok()) return 0;
    printed_[run.number] = std::move(made[""]);
    made.erase("");
    end_.outputs.merge(made);
    return ++steps_done_;
  }

  // Adds to `made` what a step has made and, without a path, what it has printed.
  absl::Status Take(const Step& step, absl::StatusOr<exec::ActionResult> result, PlanOutputs& made) {
    KERNIX_RETURN_IF_ERROR(result.status());
    if (result->exit_code != 0) return StepFailure(step.action, *result);
    made = std::move(result->outputs);
    const Printed& printed = step.printed;
    made[""] = exec::MakeContent("");
    made[printed.path] = exec::MakeContent(printed.path.empty() ? WithUsersNames(result->output, step.action.links)
                                                                : LinesWithout(printed.without, result->output));
    for (auto& [path, content] : made) {
      KERNIX_ASSIGN_OR_RETURN(content, Hold(outputs_, content));
    }
    return absl::OkStatus();
  }

  // Nobody reads more, and it is in memory now.
  std::string AllPrinted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    OutputBuffer printed(kMostPrinted);
    for (const exec::Content& text : printed_) printed.Append(*text);
    return printed.Text();
  }

  PlanEnd End() {
    const MutexLock lock(mutex_);
    if (end_.status.ok() && !waiting_.empty()) {
      end_.status = MakeError(v1::ErrorDetail::INTERNAL, StrCat("step \"", waiting_.front()->step.action.step,
                                                                "\" needs a file that no other step makes"));
    }
    end_.has_printed = std::any_of(printed_.begin(), printed_.end(),
                                   [](const exec::Content& text) { return text != nullptr && !text->empty(); });
    if (end_.status.ok()) end_.printed = AllPrinted();
    return std::move(end_);
  }

  const exec::AskersPtr askers_;
  const toolchain::ToolchainPtr toolchain_;
  const CompileMode mode_;
  StepRunner& runner_;
  const LookBudgetPtr looks_;
  const HeldOutputsPtr outputs_;
  const size_t share_;
  const size_t share_of_step_;  // so that all steps together keep to what the askers want
  const CancellationPtr asked_to_stop_;
  int on_asked_to_stop_ = 0;
  const CancellationPtr stop_ = std::make_shared<Cancellation>();  // cancels the steps
  PlanObserver& observer_;
  const PlanDone done_;

  Mutex mutex_;
  std::vector<StepRunPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<exec::Content> printed_ ABSL_GUARDED_BY(mutex_);  // by step; null: it has not ended
  PlanEnd end_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  int steps_done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

void RunPlan(Plan plan, exec::AskersPtr askers, StepRunner& runner, CancellationPtr cancellation,
             PlanObserver& observer, PlanDone done, LookBudgetPtr looks, HeldOutputsPtr outputs, size_t share) {
  std::make_shared<PlanRun>(std::move(plan), std::move(askers), runner, std::move(cancellation), observer,
                            std::move(done), std::move(looks), std::move(outputs), share)
      ->Advance();
}

}  // namespace kernix::build
