// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/cpp_compiler.h"

#include <algorithm>

#include "common/base/exceptions.h"
#include "daemon/builder/faster_action.h"
#include "daemon/builder/step_times.h"

namespace kernix::build {
namespace {

bool MakesDebugInformation(const exec::Action& action) {
  return std::any_of(action.argv.begin(), action.argv.end(),
                     [](const std::string& word) { return word.starts_with("-g"); });
}

}  // namespace

exec::ActionEnd CppCompiler::Run(Step step, const StepRunner::Run& run) {
  const UserId user = run.askers->First();
  const CompiledPreambles::Prepared prepared =
      preambles_.Prepare(MakesDebugInformation(step.action) ? std::nullopt : SplitCppCompile(step),
                         step.action.outputs.at(1), *run.toolchain, user);
  step.faster = prepared.faster;
  MutedStep muted(run.observer);
  StepRunner::Run run_muted = run;
  run_muted.observer = &muted;
  exec::ActionEnd end = RunFaster(
      step, [&](const exec::Action& action) { return runner_.RunCommand(action, run_muted); },
      [&](const exec::Action& action) { return runner_.RunCommand(action, run); });
  if (!end.ok() || end->exit_code != 0 || !end->output.empty()) return end;
  (void)CatchExceptions("nothing to learn", [&] {
    preambles_.Teach(prepared, end->outputs.at(step.object), run.toolchain, user);
    return absl::OkStatus();
  });
  return end;
}

}  // namespace kernix::build
