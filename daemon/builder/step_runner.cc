// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_runner.h"

#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/exec/action_digest.h"
#include "daemon/plan/nvcc_phases.h"

namespace kernix::build {
namespace {

constexpr size_t kMostDryRuns = 256;

// Shows phases to the observer of the step that they make up.
class PhaseObserver : public PlanObserver {
 public:
  explicit PhaseObserver(exec::ActionObserver* observer) : observer_(observer) {}
  void OnQueued(const std::string&, int actions_ahead) override {
    if (observer_ != nullptr) observer_->OnQueued(actions_ahead);
  }
  void OnStarted(const exec::Action& action) override {
    if (observer_ != nullptr) observer_->OnStarted(action);
  }
  void OnOutput(std::string_view) override {}
  void OnStepDone(int) override {}

 private:
  exec::ActionObserver* const observer_;
};

void Append(std::vector<std::string>& to, std::vector<std::string> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// What a command would have brought back.
exec::ActionResult ResultOf(const Step& step, const Phases& phases, PlanEnd& end) {
  exec::ActionResult result;
  result.output = std::move(end.printed);
  std::vector<std::string> read;
  for (const std::string& path : phases.dependencies) Append(read, ParseDependencyFile(*end.outputs.at(path)));
  for (const std::string& path : phases.preprocessed) Append(read, FilesOfLineMarkers(*end.outputs.at(path)));
  end.outputs[step.dependencies] = std::make_shared<const std::string>(MakeDependencyFile(step.object, read));
  for (const std::string& path : step.action.outputs) result.outputs[path] = end.outputs.at(path);
  return result;
}

}  // namespace

// One step that has phases, while it runs. The callbacks hold references to it.
class StepRunner::Phased : public std::enable_shared_from_this<Phased> {
 public:
  Phased(StepRunner& runner, const Step& step, Run run) : runner_(runner), step_(step), run_(std::move(run)) {}

  void Start() {
    exec::Action question = DryRunOf(step_);
    const Digest digest = exec::DigestOfAction(question, {}).hash;
    if (const auto answer = runner_.DryRun(digest)) return RunPhases(*answer);
    runner_.executor_.Submit(std::move(question), run_.user, nullptr, run_.cancellation,
                             [self = shared_from_this(), digest](absl::StatusOr<exec::ActionResult> result) {
                               self->OnDryRun(digest, std::move(result));
                             });
  }

 private:
  void OnDryRun(const Digest& digest, absl::StatusOr<exec::ActionResult> result) {
    Guard([&] {
      if (!result.ok() && KindOf(result.status()) == v1::ErrorDetail::CANCELLED) return run_.done(result.status());
      if (!result.ok() || result->exit_code != 0) return RunWhole(runner_.not_understood_);
      runner_.KeepDryRun(digest, result->output);
      RunPhases(result->output);
    });
  }

  void RunPhases(const std::string& dry_run) {
    std::optional<Phases> phases = PhasesOf(step_, dry_run);
    if (!phases) return RunWhole(runner_.not_understood_);
    std::vector<Step> steps = std::move(phases->steps);
    phases_ = *std::move(phases);
    RunPlan({.steps = std::move(steps),
             .toolchain = run_.toolchain,
             .reuse_steps = run_.reuse,
             .max_output_bytes = run_.max_output_bytes},
            run_.user, runner_, run_.max_parallel, run_.cancellation, observer_,
            [self = shared_from_this()](PlanEnd end) { self->OnPhases(std::move(end)); });
  }

  void OnPhases(PlanEnd end) {
    Guard([&] {
      if (!end.status.ok()) return OnFailure(end.status);
      runner_.in_phases_.Add();
      exec::ActionResult result = ResultOf(step_, phases_, end);
      if (run_.observer != nullptr && !result.output.empty()) run_.observer->OnOutput(result.output);
      run_.done(std::move(result));
    });
  }

  void OnFailure(const absl::Status& status) {
    const ErrorKind kind = KindOf(status);
    // The whole call would meet the same end, later.
    if (kind == v1::ErrorDetail::CANCELLED || kind == v1::ErrorDetail::RESOURCE) return run_.done(status);
    RunWhole(runner_.phase_failed_);
  }

  void RunWhole(MetricCounter& reason) {
    reason.Add();
    runner_.executor_.Submit(step_.action, run_.user, run_.observer, run_.cancellation, run_.done);
  }

  // Whoever waits for the step must learn of its end.
  template <typename F>
  void Guard(F f) {
    const absl::Status status = CatchExceptions("kernixd could not run this load's steps", [&] {
      f();
      return absl::OkStatus();
    });
    if (!status.ok()) run_.done(status);
  }

  StepRunner& runner_;
  const Step step_;
  const Run run_;
  PhaseObserver observer_{run_.observer};
  Phases phases_;  // without their steps, once these run
};

void StepRunner::Submit(const Step& step, Run run) {
  if (!step.dependencies.empty()) return std::make_shared<Phased>(*this, step, std::move(run))->Start();
  if (cache_ != nullptr && step.reuse && run.toolchain != nullptr) {
    std::optional<exec::ActionResult> kept = run.reuse ? cache_->Find(step, *run.toolchain) : std::nullopt;
    if (kept) return run.done(*std::move(kept));
    return RunAndKeep(step, std::move(run));
  }
  executor_.Submit(step.action, run.user, run.observer, std::move(run.cancellation), std::move(run.done));
}

void StepRunner::RunAndKeep(const Step& step, Run run) {
  auto done = [cache = cache_, step, toolchain = run.toolchain, start = cache_->Now(),
               done = std::move(run.done)](absl::StatusOr<exec::ActionResult> result) {
    if (result.ok()) {
      // What cannot be kept does not fail the step.
      (void)CatchExceptions("not kept", [&] {
        cache->Keep(step, *toolchain, start, *result);
        return absl::OkStatus();
      });
    }
    done(std::move(result));
  };
  executor_.Submit(step.action, run.user, run.observer, std::move(run.cancellation), std::move(done));
}

void StepRunner::Register(MetricsRegistry& registry) const {
  constexpr char kName[] = "kernix_nvcc_compiles_total";
  constexpr char kHelp[] = "Compiles by nvcc: in its phases, or by one call of nvcc, and why.";
  registry.AddCounter(kName, kHelp, in_phases_, {{"how", "phases"}});
  registry.AddCounter(kName, kHelp, not_understood_, {{"how", "whole_not_understood"}});
  registry.AddCounter(kName, kHelp, phase_failed_, {{"how", "whole_after_failure"}});
}

std::shared_ptr<const std::string> StepRunner::DryRun(const Digest& question) {
  const MutexLock lock(mutex_);
  const auto found = dry_runs_.find(question);
  return found == dry_runs_.end() ? nullptr : found->second;
}

void StepRunner::KeepDryRun(const Digest& question, const std::string& answer) {
  const MutexLock lock(mutex_);
  if (dry_runs_.size() >= kMostDryRuns) dry_runs_.clear();
  dry_runs_[question] = std::make_shared<const std::string>(answer);
}

}  // namespace kernix::build
