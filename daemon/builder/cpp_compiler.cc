// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/cpp_compiler.h"

#include <algorithm>
#include <utility>

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

struct CppCompiler::Compile {
  Compile(const Step& s, StepRunner::Run r) : step(s), run(std::move(r)), muted(run.observer) {}

  Step step;
  const StepRunner::Run run;
  MutedStep muted;
  CompiledPreambles::Prepared prepared;
};

void CppCompiler::Submit(const Step& step, StepRunner::Run run) {
  const auto compile = std::make_shared<Compile>(step, std::move(run));
  compile->prepared =
      preambles_.Prepare(MakesDebugInformation(step.action) ? std::nullopt : SplitCppCompile(step),
                         step.action.outputs.at(1), *compile->run.toolchain, compile->run.askers->First());
  compile->step.faster = compile->prepared.faster;
  const auto run_muted = [this, compile](const exec::Action& action, exec::ActionDone done) {
    Run(*compile, action, &compile->muted, std::move(done));
  };
  const auto run_shown = [this, compile](const exec::Action& action, exec::ActionDone done) {
    Run(*compile, action, compile->run.observer, std::move(done));
  };
  const auto end = [this, compile](absl::StatusOr<exec::ActionResult> result) { End(*compile, std::move(result)); };
  compile->step.faster != nullptr ? RunFaster(compile->step, run_muted, run_shown, end)
                                  : run_shown(compile->step.action, end);
}

void CppCompiler::Run(const Compile& compile, const exec::Action& action, StepObserver* observer,
                      exec::ActionDone done) {
  StepRunner::Run run = compile.run;
  run.observer = observer;
  run.done = done;
  const absl::Status submitted = CatchExceptions("kernixd could not run the compile", [&] {
    runner_.RunCommand(action, std::move(run));
    return absl::OkStatus();
  });
  if (!submitted.ok()) done(submitted);
}

void CppCompiler::End(const Compile& compile, absl::StatusOr<exec::ActionResult> result) {
  Learning::LessonPtr lesson;
  (void)CatchExceptions("nothing to learn", [&] {
    lesson = PrepareLesson(compile, result);
    return absl::OkStatus();
  });
  compile.run.done(std::move(result));  // without a lesson, this may be the end of the compiler
  if (lesson != nullptr) Learning::Start(std::move(lesson));
}

Learning::LessonPtr CppCompiler::PrepareLesson(const Compile& compile,
                                               const absl::StatusOr<exec::ActionResult>& result) {
  if (!result.ok() || result->exit_code != 0 || !result->output.empty()) return nullptr;
  return preambles_.PrepareLesson(compile.prepared, result->outputs.at(compile.step.object), compile.run.toolchain,
                                  compile.run.askers->First());
}

}  // namespace kernix::build
