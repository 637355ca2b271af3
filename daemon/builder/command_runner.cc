// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/command_runner.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/exceptions.h"
#include "common/base/status_macros.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/failure.h"
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

// Whether the result is what the step's own action would have brought. Completes the list of files that were read.
bool TakeResult(const FasterAction& faster, absl::StatusOr<exec::ActionResult>& result) {
  if (!result.ok() || result->exit_code != 0 || !result->output.empty()) return false;
  exec::Content& list = result->outputs.at(faster.dependencies);
  std::vector<std::string> files = ParseDependencyFile(*list);
  files.insert(files.end(), faster.files.begin(), faster.files.end());
  list = exec::MakeContent(MakeDependencyFile(faster.dependencies, files));
  return true;
}

}  // namespace

exec::ActionEnd CommandRunner::RunStep(const Step& step, const StepRun& run) {
  TimedStep timed(env_, metrics_, step.action.step, step.kind, run.observer, run.trace);
  const bool may_reuse = step.reuse && run.toolchain != nullptr && run.mode != CompileMode::kWhole;
  exec::ActionEnd end = may_reuse ? RunReusable(step, run, timed) : RunFaster(step, run, timed);
  timed.End(end);
  return end;
}

exec::ActionEnd CommandRunner::RunReusable(const Step& step, const StepRun& run, TimedStep& timed) {
  KERNIX_ASSIGN_OR_RETURN(Step canonical, WithCanonicalDeviceUnit(step, run.outputs));
  const Digest key = StepCache::KeyOf(canonical, *run.toolchain);
  const Reusable reusable{key, std::move(canonical), run, timed};
  if (run.mode == CompileMode::kAnew) return timed.Run(executor_, reusable.step.action, run.askers, run.cancellation);
  return is_reuse_disabled_ ? RunAndKeep(reusable) : FindOrRun(reusable);
}

exec::ActionEnd CommandRunner::FindOrRun(const Reusable& reusable) {
  const StepRun& run = reusable.run;
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

exec::ActionEnd CommandRunner::RunAndKeep(const Reusable& reusable) {
  reusable_["run"].Add();
  const BuildStart start = cache_.Now();
  exec::ActionEnd end = RunFaster(reusable.step, reusable.run, reusable.timed);
  if (end.ok()) {
    // A result that cannot be kept does not make the step fail.
    IgnoreExceptions("not kept",
                     [&] { cache_.Keep(reusable.key, reusable.step, *reusable.run.toolchain, start, *end); });
  }
  return end;
}

exec::ActionEnd CommandRunner::RunFaster(const Step& step, const StepRun& run, TimedStep& timed) {
  if (step.faster != nullptr) {
    exec::ActionEnd end = timed.Run(executor_, step.faster->action, run.askers, run.cancellation, /*muted=*/true);
    if (!end.ok() && WouldEndAgain(end.status())) return end;
    bool is_taken = false;
    IgnoreExceptions("not taken", [&] { is_taken = TakeResult(*step.faster, end); });
    if (is_taken) return end;
  }
  return timed.Run(executor_, step.action, run.askers, run.cancellation);
}

void CommandRunner::Register(MetricsRegistry& registry, const MetricsRegistry::Labels& pool) const {
  metrics_.Register(registry, pool);
  registry.AddGauge(
      "kernix_steps_running", "Steps that run now.", [this] { return executor_.load().running; }, pool);
  registry.AddGauge(
      "kernix_steps_queued", "Steps that wait for the pool now.", [this] { return executor_.load().queued; }, pool);
  if (pool.empty()) reusable_.Register(registry);
}

}  // namespace kernix::build
