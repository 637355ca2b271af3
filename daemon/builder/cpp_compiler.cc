// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/cpp_compiler.h"

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "common/base/exceptions.h"

namespace kernix::build {
namespace {

// Passes on everything but what the command prints.
class MutedStep final : public StepObserver {
 public:
  // `observer` may be null, and must outlive this one.
  explicit MutedStep(StepObserver* observer) : observer_(observer) {}
  void OnQueued(int actions_ahead) override {
    if (observer_ != nullptr) observer_->OnQueued(actions_ahead);
  }
  void OnStarted(const exec::Action& action) override {
    if (observer_ != nullptr) observer_->OnStarted(action);
  }
  void OnOutput(std::string_view) override {}
  void OnStepEnded(const StepTimes& times) override {
    if (observer_ != nullptr) observer_->OnStepEnded(times);
  }

 private:
  StepObserver* const observer_;
};

bool MakesDebugInformation(const exec::Action& action) {
  return std::any_of(action.argv.begin(), action.argv.end(),
                     [](const std::string& word) { return word.starts_with("-g"); });
}

}  // namespace

struct CppCompiler::Compile {
  Compile(const Step& s, StepRunner::Run r, CompiledPreambles::Prepared p)
      : step(s), run(std::move(r)), muted(run.observer), prepared(std::move(p)) {}

  const Step step;
  const StepRunner::Run run;
  MutedStep muted;
  const CompiledPreambles::Prepared prepared;
};

void CppCompiler::Submit(const Step& step, StepRunner::Run run) {
  std::optional<SplitCompile> split = MakesDebugInformation(step.action) ? std::nullopt : SplitCppCompile(step);
  CompiledPreambles::Prepared prepared =
      preambles_.Prepare(std::move(split), step.action.outputs.at(1), *run.toolchain);
  const auto compile = std::make_shared<Compile>(step, std::move(run), std::move(prepared));
  compile->prepared.faster != nullptr ? RunFaster(compile) : RunWhole(compile);
}

void CppCompiler::RunFaster(const CompilePtr& compile) {
  StepRunner::Run run = compile->run;
  run.observer = &compile->muted;
  run.done = [this, compile](absl::StatusOr<exec::ActionResult> result) {
    if (!result.ok() && KindOf(result.status()) == v1::ErrorDetail::CANCELLED) return compile->run.done(result);
    const absl::Status status = CatchExceptions("the compile could not be run", [&] {
      TakeResult(*compile->prepared.faster, result) ? compile->run.done(std::move(result)) : RunWhole(compile);
      return absl::OkStatus();
    });
    if (!status.ok()) compile->run.done(status);
  };
  runner_.RunCommand(compile->prepared.faster->action, std::move(run));
}

void CppCompiler::RunWhole(const CompilePtr& compile) {
  StepRunner::Run run = compile->run;
  run.done = [this, compile](absl::StatusOr<exec::ActionResult> result) {
    std::shared_ptr<Learning::Lesson> lesson;
    (void)CatchExceptions("nothing to learn", [&] {
      lesson = PrepareLesson(compile, result);
      return absl::OkStatus();
    });
    compile->run.done(std::move(result));  // without a lesson, this may be the end of the compiler
    if (lesson != nullptr) lesson->Start();
  };
  runner_.RunCommand(compile->step.action, std::move(run));
}

std::shared_ptr<Learning::Lesson> CppCompiler::PrepareLesson(const CompilePtr& compile,
                                                             const absl::StatusOr<exec::ActionResult>& result) {
  if (!result.ok() || result->exit_code != 0 || !result->output.empty()) return nullptr;
  return preambles_.PrepareLesson(compile->prepared, result->outputs.at(compile->step.object), compile->run.toolchain,
                                  compile->run.user);
}

}  // namespace kernix::build
