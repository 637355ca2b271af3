// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_runner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/base/exceptions.h"

namespace kernix::build {
namespace {

bool MakesDebugInformation(const exec::Action& action) {
  return std::any_of(action.argv.begin(), action.argv.end(),
                     [](const std::string& word) { return word.starts_with("-g"); });
}

}  // namespace

StepRunner::StepRunner(Env& env, exec::Executor& executor, StepCache& cache, exec::Executor* background,
                       const Shortcuts& disabled)
    : commands_(env, executor, cache, disabled),
      lessons_(background != nullptr ? std::make_unique<CommandRunner>(env, *background, cache) : nullptr),
      compiled_preambles_(cache, learning_, disabled),
      nvcc_(env, commands_, cache, compiled_preambles_, learning_, disabled),
      linker_(env, commands_, disabled),
      learning_(lessons_.get()) {}

exec::ActionEnd StepRunner::RunStep(const Step& step, const StepRun& run) {
  if (step.kind == StepKind::kCudaCompile) return nvcc_.Run(step, run);
  if (step.kind == StepKind::kCppCompile) return RunCppCompile(step, run);
  if (step.kind == StepKind::kLink || step.kind == StepKind::kPlainLink) return linker_.Run(step, run);
  return commands_.RunStep(step, run);
}

exec::ActionEnd StepRunner::RunCppCompile(Step step, const StepRun& run) {
  if (run.toolchain == nullptr || run.mode != CompileMode::kFast) return commands_.RunStep(step, run);
  const UserId user = run.askers->First();
  const CompiledPreambles::Prepared prepared =
      compiled_preambles_.Prepare(MakesDebugInformation(step.action) ? std::nullopt : SplitCppCompile(step),
                                  step.action.outputs.at(1), *run.toolchain, user);
  step.faster = prepared.faster;
  exec::ActionEnd end = commands_.RunStep(step, run);
  if (!end.ok() || end->exit_code != 0 || !end->output.empty()) return end;
  IgnoreExceptions("nothing to learn",
                   [&] { compiled_preambles_.Teach(prepared, end->outputs.at(step.object), run.toolchain, user); });
  return end;
}

void StepRunner::Register(MetricsRegistry& registry) const {
  nvcc_.Register(registry);
  compiled_preambles_.Register(registry);
  linker_.Register(registry);
  commands_.Register(registry);
  if (lessons_ != nullptr) lessons_->Register(registry, {{"pool", "lessons"}});
  registry.AddGauge("kernix_lessons", "Preparations of shortcuts for later builds: running and waiting.",
                    [this] { return static_cast<int64_t>(LessonsLeft()); });
}

}  // namespace kernix::build
