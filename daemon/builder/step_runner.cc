// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_runner.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/exceptions.h"
#include "common/base/status_macros.h"
#include "daemon/builder/compiled_preambles.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/failure.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/linker.h"
#include "daemon/builder/nvcc_compiler.h"
#include "daemon/language/read/device_text.h"

namespace kernix::build {
namespace {

// The step with exactly what counts of its device unit, where all bodies do.
absl::StatusOr<Step> WithCanonicalDeviceUnit(Step step, const HeldOutputsPtr& outputs) {
  if (step.reuse->device_unit.empty() || !step.reuse->host_bodies_count) return step;
  for (exec::InputFile& input : step.action.inputs) {
    if (input.path != step.reuse->device_unit) continue;
    std::optional<std::string> text = language::CanonicalDeviceText(*input.content);
    if (!text) continue;
    KERNIX_ASSIGN_OR_RETURN(exec::Content content, Hold(outputs, exec::MakeContent(*std::move(text))));
    input = exec::MakeInput(input.path, std::move(content));
  }
  step.reuse->device_unit.clear();
  return step;
}

bool MakesDebugInformation(const exec::Action& action) {
  return std::any_of(action.argv.begin(), action.argv.end(),
                     [](const std::string& word) { return word.starts_with("-g"); });
}

// Whether the result is what the step's own action would have brought. Completes the list of files that were read.
bool TakeResult(const FasterAction& faster, absl::StatusOr<exec::ActionResult>& result) {
  if (!result.ok() || result->exit_code != 0 || !result->output.empty()) return false;
  exec::Content& list = result->outputs.at(faster.dependencies);
  std::vector<std::string> files = ParseDependencyFile(*list);
  files.insert(files.end(), faster.files.begin(), faster.files.end());
  list = exec::MakeContent(MakeDependencyFile(faster.dependencies, files));
  return true;
}

using RunAction = std::function<exec::ActionEnd(const exec::Action& action)>;

// Runs `step.faster`, if there is one, by `run_faster`. If it fails or prints anything, or if there is none, runs the
// step's own action by `run_own`.
exec::ActionEnd RunFaster(const Step& step, const RunAction& run_faster, const RunAction& run_own) {
  if (step.faster == nullptr) return run_own(step.action);
  exec::ActionEnd end = run_faster(step.faster->action);
  if (!end.ok() && WouldEndAgain(end.status())) return end;
  bool is_taken = false;
  IgnoreExceptions("not taken", [&] { is_taken = TakeResult(*step.faster, end); });
  return is_taken ? end : run_own(step.action);
}

}  // namespace

struct StepRunner::Parts {
  Parts(Env& env, StepRunner& runner, StepCache& cache, StepRunner* lessons, const Shortcuts& disabled)
      : compiled_preambles(cache, learning, disabled),
        nvcc(env, runner, cache, compiled_preambles, learning, disabled),
        linker(env, runner, disabled),
        learning(lessons) {}

  CompiledPreambles compiled_preambles;
  NvccCompiler nvcc;
  Linker linker;
  Learning learning;  // last: what it waits for uses the others
};

StepRunner::StepRunner(Env& env, exec::Executor& executor, StepCache& cache, StepRunner* lessons, Shortcuts disabled)
    : env_(env),
      executor_(executor),
      cache_(cache),
      lessons_(lessons),
      disabled_(std::move(disabled)),
      parts_(std::make_unique<Parts>(env, *this, cache, lessons, disabled_)) {}

StepRunner::~StepRunner() = default;

exec::ActionEnd StepRunner::RunStep(const Step& step, const Run& run) {
  const bool has_shortcuts = run.toolchain != nullptr && run.mode == CompileMode::kFast;
  if (step.kind == StepKind::kCudaCompile) return parts_->nvcc.Run(step, run);
  if (step.kind == StepKind::kCppCompile && has_shortcuts) return RunCppCompile(step, run);
  if (step.kind == StepKind::kLink || step.kind == StepKind::kPlainLink) return parts_->linker.Run(step, run);
  if (step.reuse && run.toolchain != nullptr && run.mode != CompileMode::kWhole) return RunReusable(step, run);
  return RunCommand(step.action, step.kind, run);
}

exec::ActionEnd StepRunner::RunCommand(const exec::Action& action, StepKind kind, const Run& run) {
  TimedStep timed(env_, metrics_, action.step, kind, run.observer, run.trace);
  exec::ActionEnd end = timed.Run(executor_, action, run.askers, run.cancellation);
  timed.End(end);
  return end;
}

exec::ActionEnd StepRunner::RunCppCompile(Step step, const Run& run) {
  CompiledPreambles& preambles = parts_->compiled_preambles;
  const UserId user = run.askers->First();
  const CompiledPreambles::Prepared prepared =
      preambles.Prepare(MakesDebugInformation(step.action) ? std::nullopt : SplitCppCompile(step),
                        step.action.outputs.at(1), *run.toolchain, user);
  step.faster = prepared.faster;
  MutedStep muted(run.observer);
  Run run_muted = run;
  run_muted.observer = &muted;
  exec::ActionEnd end = RunFaster(
      step, [&](const exec::Action& action) { return RunCommand(action, step.kind, run_muted); },
      [&](const exec::Action& action) { return RunCommand(action, step.kind, run); });
  if (!end.ok() || end->exit_code != 0 || !end->output.empty()) return end;
  IgnoreExceptions("nothing to learn",
                   [&] { preambles.Teach(prepared, end->outputs.at(step.object), run.toolchain, user); });
  return end;
}

exec::ActionEnd StepRunner::RunReusable(const Step& step, const Run& run) {
  TimedStep timed(env_, metrics_, step.action.step, step.kind, run.observer, run.trace);
  KERNIX_ASSIGN_OR_RETURN(Step canonical, WithCanonicalDeviceUnit(step, run.outputs));
  const Digest key = StepCache::KeyOf(canonical, *run.toolchain);
  Reusable reusable{key, std::move(canonical), run, timed};
  exec::ActionEnd end = run.mode == CompileMode::kAnew
                            ? timed.Run(executor_, reusable.step.action, run.askers, run.cancellation)
                        : disabled_.contains(Shortcut::kStepResults) ? RunAndKeep(reusable)
                                                                     : FindOrRun(reusable);
  timed.End(end);
  return end;
}

exec::ActionEnd StepRunner::FindOrRun(const Reusable& reusable) {
  const Run& run = reusable.run;
  if (std::optional<exec::ActionResult> kept = cache_.Find(reusable.key, *run.toolchain)) {
    reusable_["reused"].Add();
    reusable.timed.TakesResult(v1::TracedStep::REUSED);
    kept->is_reused = true;
    return *std::move(kept);
  }
  std::optional<exec::ActionResult> found =
      cache_.FindUpstream(reusable.key, reusable.step, run.toolchain, run.budget, run.cancellation);
  if (!found) return RunAndKeep(reusable);
  reusable_["upstream"].Add();
  reusable.timed.TakesResult(v1::TracedStep::UPSTREAM);
  found->is_reused = true;
  return *std::move(found);
}

exec::ActionEnd StepRunner::RunAndKeep(const Reusable& reusable) {
  reusable_["run"].Add();
  const Run& run = reusable.run;
  const BuildStart start = cache_.Now();
  const auto execute = [&](const exec::Action& action) {
    return reusable.timed.Run(executor_, action, run.askers, run.cancellation);
  };
  exec::ActionEnd end = RunFaster(reusable.step, execute, execute);
  if (end.ok()) {
    // A result that cannot be kept does not make the step fail.
    IgnoreExceptions("not kept", [&] { cache_.Keep(reusable.key, reusable.step, *run.toolchain, start, *end); });
  }
  return end;
}

size_t StepRunner::LessonsLeft() const { return parts_->learning.size(); }

void StepRunner::Register(MetricsRegistry& registry) const {
  parts_->nvcc.Register(registry);
  parts_->compiled_preambles.Register(registry);
  parts_->linker.Register(registry);
  const auto add_steps_of = [&registry](const StepRunner& runner, const MetricsRegistry::Labels& labels) {
    runner.metrics_.Register(registry, labels);
    registry.AddGauge(
        "kernix_steps_running", "Steps that run now.", [&runner] { return runner.executor_.load().running; }, labels);
    registry.AddGauge(
        "kernix_steps_queued", "Steps that wait for the pool now.",
        [&runner] { return runner.executor_.load().queued; }, labels);
  };
  add_steps_of(*this, {});
  if (lessons_ != nullptr) add_steps_of(*lessons_, {{"pool", "lessons"}});
  registry.AddGauge("kernix_lessons", "Preparations of shortcuts for later builds: running and waiting.",
                    [this] { return static_cast<int64_t>(LessonsLeft()); });
  reusable_.Register(registry);
}

}  // namespace kernix::build
