// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/plan_runner.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
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
#include "daemon/plan/tool_paths.h"

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

// Threads of one load. Engines may have as many workers.
constexpr size_t kMostAtOnce = 128;

class PlanRun {
 public:
  PlanRun(Plan plan, StepFunction run_step, StepRun run)
      : run_step_(std::move(run_step)), run_(std::move(run)), share_(run_.share), in_order_(plan.in_order) {
    run_.toolchain = std::move(plan.toolchain);
    run_.mode = plan.mode;
    run_.share = share_ * StepsThatStart(plan);  // so that all steps together keep to what the askers want
    for (Step& step : plan.steps)
      waiting_.push_back(&steps_.emplace_back(steps_.size(), std::move(step), run_.observer));
    wanted_ = steps_.size();
  }

  PlanEnd Run() {
    const ScopedOnCancel on_cancel(run_.cancellation.get(), [this] { CancelFrom(0); });
    Work(/*is_first=*/true);
    std::vector<std::thread> threads;
    {
      const MutexLock lock(mutex_);
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
    return End();
  }

 private:
  // One step, and the observer of its action.
  struct PlanStep : exec::ActionObserver {
    PlanStep(size_t i, Step s, ActionObserver* of_plan) : ActionObserver(of_plan), index(i), step(std::move(s)) {}
    // In whole lines, so that no path is cut in two.
    void OnOutput(std::string_view text) override {
      unfinished += text;
      const size_t end = unfinished.rfind('\n') + 1;
      Show(std::string_view(unfinished).substr(0, end));
      unfinished.erase(0, end);
    }
    void OnEnded() { Show(std::exchange(unfinished, "")); }
    void Show(std::string_view lines) {
      if (!lines.empty()) ActionObserver::OnOutput(WithUsersNames(lines, step.action.links));
    }

    const size_t index;
    Step step;
    const CancellationPtr cancellation = std::make_shared<Cancellation>();
    std::string unfinished;  // line
    exec::Content printed;   // null: it has not ended
  };

  // How a step has ended.
  struct Result {
    absl::Status status;
    PlanOutputs outputs;
    exec::Content printed;
    bool is_reused = false;
    std::shared_ptr<const Step> failed;  // its command has
  };

  // Runs steps, one after the other, as long as there are some that can run.
  void Work(bool is_first) {
    while (PlanStep* step = Next(is_first)) {
      Result result;
      result.status =
          CatchExceptions("kernixd could not run this load's steps", [&] { return RunStep(*step, result); });
      const int done = Settle(*step, std::move(result));
      if (done > 0 && run_.observer != nullptr) run_.observer->OnStepDone(done);
    }
  }

  // Takes a step that can run, and has somebody take the next one. Null: there is none; the first thread waits until
  // no step runs any more.
  PlanStep* Next(bool is_first) {
    const MutexLock lock(mutex_);
    while (true) {
      const auto ready = FindReady();
      if (ready != waiting_.end()) {
        PlanStep* const taken = *ready;
        waiting_.erase(ready);
        ++running_;
        if (!first_waits_ && FindReady() != waiting_.end()) AddWorker();
        return taken;
      }
      if (!is_first || running_ == 0) return nullptr;
      first_waits_ = true;
      changed_.Wait(mutex_);
      first_waits_ = false;
    }
  }

  std::vector<PlanStep*>::iterator FindReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t wanted = run_.askers->max_parallel();
    const size_t of_all = wanted == 0 ? kMostAtOnce : std::min(wanted, kMostAtOnce);
    const size_t most = std::max<size_t>(of_all / share_, 1);
    auto ready = waiting_.end();
    if (running_ < most) ready = waiting_.begin();
    while (ready != waiting_.end() && !IsReady(**ready)) ++ready;
    return ready;
  }

  bool IsReady(const PlanStep& run) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (run.index >= wanted_) return false;
    for (const std::string& path : run.step.inputs_from_steps) {
      if (!end_.outputs.contains(path)) return false;
    }
    return true;
  }

  // Without another thread, the steps run one after the other.
  void AddWorker() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    IgnoreExceptions("no thread", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      threads_.emplace_back([this] { Work(/*is_first=*/false); });
    });
  }

  absl::Status RunStep(PlanStep& run, Result& result) {
    AddInputs(run.step);
    StepRun how = run_;
    how.observer = &run;
    how.cancellation = run.cancellation;
    exec::ActionEnd end = run_step_(run.step, how);
    run.OnEnded();
    KERNIX_RETURN_IF_ERROR(end.status());
    if (end->exit_code != 0) {
      result.failed = std::make_shared<const Step>(run.step);
      return StepFailure(run.step.action, *end);
    }
    result.outputs = std::move(end->outputs);
    result.is_reused = end->is_reused;
    const Printed& printed = run.step.printed;
    result.printed = exec::MakeContent(printed.path.empty() ? WithUsersNames(end->output, run.step.action.links) : "");
    if (!printed.path.empty()) {
      result.outputs[printed.path] = exec::MakeContent(LinesWithout(printed.without, end->output));
    }
    KERNIX_ASSIGN_OR_RETURN(result.printed, Hold(run_.outputs, result.printed));
    for (auto& [path, content] : result.outputs) {
      KERNIX_ASSIGN_OR_RETURN(content, Hold(run_.outputs, content));
    }
    return absl::OkStatus();
  }

  void AddInputs(Step& step) {
    const MutexLock lock(mutex_);
    for (const std::string& path : step.inputs_from_steps) {
      step.action.inputs.push_back(exec::MakeInput(path, end_.outputs.at(path)));
    }
  }

  // Returns the number of steps done so far, 0 if the step has failed or is not wanted any more.
  int Settle(PlanStep& run, Result result) {
    const int done = Record(run, std::move(result));
    if (done == 0) CancelFrom(Wanted());  // after the failure is recorded: what it cancels fails, too
    return done;
  }

  int Record(PlanStep& run, Result result) {
    const MutexLock lock(mutex_);
    --running_;
    changed_.NotifyAll();
    if (run.index < wanted_ && !result.status.ok()) {
      end_.status = result.status;
      end_.failed = std::move(result.failed);
      wanted_ = in_order_ ? run.index : 0;
    }
    if (run.index >= wanted_) return 0;
    run.printed = std::move(result.printed);
    end_.outputs.merge(result.outputs);
    if (result.is_reused) end_.reused.insert(run.step.kind);
    return ++steps_done_;
  }

  size_t Wanted() const {
    const MutexLock lock(mutex_);
    return wanted_;
  }

  void CancelFrom(size_t first) {
    for (size_t index = first; index < steps_.size(); ++index) steps_[index].cancellation->Cancel();
  }

  PlanEnd End() {
    const MutexLock lock(mutex_);
    if (end_.status.ok() && !waiting_.empty()) {
      end_.status = MakeError(v1::ErrorDetail::INTERNAL, StrCat("step \"", waiting_.front()->step.action.step,
                                                                "\" needs a file that no other step makes"));
    }
    OutputBuffer printed(kMostPrinted);  // nobody reads more, and it is in memory now
    for (const PlanStep& run : steps_) {
      if (run.index < wanted_ && run.printed != nullptr) printed.Append(*run.printed);
    }
    end_.printed = printed.Text();
    return std::move(end_);
  }

  const StepFunction run_step_;
  StepRun run_;
  const size_t share_;
  const bool in_order_;
  std::deque<PlanStep> steps_;  // each is its thread's while it runs

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<PlanStep*> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  PlanEnd end_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // so many of the first steps: those before a failure, or none
  int steps_done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool first_waits_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

PlanEnd RunPlan(Plan plan, StepFunction run_step, StepRun run) {
  return PlanRun(std::move(plan), std::move(run_step), std::move(run)).Run();
}

}  // namespace kernix::build
