// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_runner.h"

#include <optional>
#include <utility>

#include "common/base/exceptions.h"
#include "daemon/builder/nvcc_compiler.h"

namespace kernix::build {

StepRunner::StepRunner(Env& env, exec::Executor& executor, StepCache& cache)
    : executor_(executor), cache_(cache), nvcc_(std::make_unique<NvccCompiler>(env, executor, *this, cache)) {}

StepRunner::~StepRunner() = default;

void StepRunner::Submit(const Step& step, Run run) {
  if (!step.dependencies.empty()) return nvcc_->Submit(step, std::move(run));
  if (step.reuse && run.toolchain != nullptr) {
    std::optional<exec::ActionResult> kept = run.take_shortcuts ? cache_.Find(step, *run.toolchain) : std::nullopt;
    if (kept) return run.done(*std::move(kept));
    return RunAndKeep(step, std::move(run));
  }
  executor_.Submit(step.action, run.user, run.observer, std::move(run.cancellation), std::move(run.done));
}

void StepRunner::RunAndKeep(const Step& step, Run run) {
  auto done = [this, step, toolchain = run.toolchain, start = cache_.Now(),
               done = std::move(run.done)](absl::StatusOr<exec::ActionResult> result) {
    if (result.ok()) {
      // What cannot be kept does not fail the step.
      (void)CatchExceptions("not kept", [&] {
        cache_.Keep(step, *toolchain, start, *result);
        return absl::OkStatus();
      });
    }
    done(std::move(result));
  };
  executor_.Submit(step.action, run.user, run.observer, std::move(run.cancellation), std::move(done));
}

void StepRunner::Register(MetricsRegistry& registry) const { nvcc_->Register(registry); }

}  // namespace kernix::build
