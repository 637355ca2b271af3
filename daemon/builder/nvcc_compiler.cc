// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/nvcc_compiler.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/failure.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/exec/action_digest.h"
#include "daemon/plan/nvcc_phases.h"
#include "daemon/plan/slim_phases.h"

namespace kernix::build {
namespace {

template <typename T>
void Append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Makes what earlier steps have made an input of `step`.
void AddInputs(Step& step, const PlanOutputs& made) {
  std::erase_if(step.inputs_from_steps, [&](const std::string& path) {
    const auto found = made.find(path);
    if (found == made.end()) return false;
    step.action.inputs.push_back(exec::MakeInput(path, found->second));
    return true;
  });
}

// Whether a phase says what is wrong; an assembler says ": Error: ".
bool NamesError(std::string_view words) {
  return absl::StrContains(ToAbsl(words), kErrorMark) || absl::StrContains(ToAbsl(words), ": Error: ");
}

// Whether the preprocessor has ended at an #include that leads nowhere, which it does in each pass.
bool LacksHeader(std::string_view output) {
  return absl::StrContains(ToAbsl(output), ": No such file or directory") &&
         absl::StrContains(ToAbsl(output), "compilation terminated.");
}

// ptxas's message in a whole call for one architecture, where the PTX is unit.ptx, not unit.compute_90.ptx.
std::string AsInWholeCall(const Step& ptxas, const std::string& output) {
  for (const std::string& word : ptxas.action.argv) {
    const std::string name(Basename(word));
    const size_t architecture = name.find(".compute_");
    if (architecture == std::string::npos || !name.ends_with(".ptx")) continue;
    return absl::StrReplaceAll(output, {{name, StrCat(name.substr(0, architecture), ".ptx")}});
  }
  return output;
}

}  // namespace

// One compile.
class NvccCompiler::Compile {
 public:
  // All must outlive it. `lines_count`: what serves may not show lines of another text of the same code.
  Compile(NvccCompiler& compiler, const Step& step, const StepRun& run, bool lines_count = false)
      : compiler_(compiler),
        step_(step),
        run_(run),
        held_(run.outputs != nullptr ? run.outputs->ForPart() : nullptr),
        lines_count_(lines_count) {}

  exec::ActionEnd Run() {
    if (run_.mode == CompileMode::kWhole || !compiler_.has_phases_) return RunWhole("whole_forced");
    KERNIX_ASSIGN_OR_RETURN(const DryRunPtr dry_run, AskNvcc());
    std::optional<Phases> phases = dry_run != nullptr ? PhasesOf(step_, *dry_run, Programs()) : std::nullopt;
    if (!phases) return RunWhole("whole_not_understood");
    phases_ = *std::move(phases);
    if (lines_count_) LetLinesCount(phases_);
    if (run_.mode == CompileMode::kAnew) {
      compiler_.stand_ins_.CountWhole("whole_forced");
    } else {
      choice_ = compiler_.stand_ins_.Guess(phases_, run_.toolchain);
    }
    return choice_.known != nullptr ? RunWithStandIn() : RunWithWholeHeader();
  }

 private:
  // nvcc's answer to a dry run. Null: nothing that serves.
  absl::StatusOr<DryRunPtr> AskNvcc() {
    const Step question{.action = DryRunOf(step_)};
    const Digest digest = exec::DigestOfAction(question.action, {}).hash;
    if (std::optional<DryRunPtr> known = compiler_.dry_runs_.Find(digest)) return *std::move(known);
    const exec::ActionEnd end = compiler_.commands_.RunStep(
        question, {.askers = run_.askers, .trace = run_.trace, .cancellation = run_.cancellation});
    if (!end.ok() && WouldEndAgain(end.status())) return end.status();
    if (!end.ok() || end->exit_code != 0) return nullptr;
    // The question's digest names the tool that was identified.
    const bool is_still_the_tool = run_.toolchain == nullptr || Unchanged(compiler_.env_, run_.toolchain->files);
    auto answer = std::make_shared<const std::string>(end->output);
    if (is_still_the_tool) compiler_.dry_runs_.Put(digest, answer);
    return answer;
  }

  bool UsesEarlierBuilds() const { return run_.toolchain != nullptr && run_.mode == CompileMode::kFast; }

  ProgramFolder Programs() const {
    const bool beside_host = run_.toolchain != nullptr && run_.toolchain->cuda.has_value() &&
                             run_.toolchain->cuda->programs_beside_host_compiler;
    return beside_host ? ProgramFolder::kBesideHostCompiler : ProgramFolder::kBesideNvcc;
  }

  // If the stand-in does not serve, the whole header does.
  exec::ActionEnd RunWithStandIn() {
    Phases slim = WithStandIn(phases_, choice_.known->passes, choice_.parts);
    preprocessing_ = compiler_.preambles_.Prepare(slim, *run_.toolchain, run_.askers->First(), held_);
    PlanEnd preprocessed = Preprocess();
    if (!preprocessed.status.ok()) return OnFailure(slim, preprocessed);
    if (!compiler_.stand_ins_.Serves(choice_, slim, preprocessed.outputs, *run_.toolchain)) {
      return RunWithWholeHeader();
    }
    return RunCompile(slim, preprocessed);
  }

  exec::ActionEnd RunWithWholeHeader() {
    choice_.known = nullptr;
    preprocessing_ = {};
    if (UsesEarlierBuilds()) {
      preprocessing_ = compiler_.preambles_.Prepare(phases_, *run_.toolchain, run_.askers->First(), held_);
    }
    if (preprocessing_.uses_kept()) {
      PlanEnd preprocessed = Preprocess();
      if (!preprocessed.status.ok()) return OnFailure(phases_, preprocessed);
      return RunCompile(phases_, preprocessed);
    }
    // Each pass goes on by itself.
    compiler_.preambles_.CountPasses(preprocessing_);
    std::vector<Step> steps = phases_.preprocess;
    Append(steps, phases_.compile);
    return RunSteps(phases_, std::move(steps));
  }

  // With kept preambles, and without them if that fails.
  PlanEnd Preprocess() {
    PlanEnd end = RunPhases(preprocessing_.steps());
    if (!preprocessing_.uses_kept()) return end;
    if (!end.status.ok() && WouldEndAgain(end.status)) return end;
    if (end.status.ok() && compiler_.preambles_.Join(preprocessing_, held_, end)) return end;
    compiler_.preambles_.CountMisfit();
    for (Preprocessing::Pass& pass : preprocessing_.passes) {
      pass.text = nullptr;
      pass.split.reset();
    }
    return RunPhases(preprocessing_.steps());
  }

  // The steps after preprocessing.
  exec::ActionEnd RunCompile(Phases& phases, PlanEnd& preprocessed) {
    compiler_.preambles_.CountPasses(preprocessing_);
    KERNIX_RETURN_IF_ERROR(Take(preprocessed));
    preprocessed_ = outputs_;
    printed_before_ = printed_;
    return RunPreprocessed(phases);
  }

  exec::ActionEnd RunPreprocessed(Phases& phases) {
    std::vector<Step> steps = phases.compile;
    for (Step& step : steps) AddInputs(step, outputs_);
    return RunSteps(phases, std::move(steps));
  }

  // `steps`: those before the host compile.
  exec::ActionEnd RunSteps(Phases& phases, std::vector<Step> steps) {
    PlanEnd before = RunPhases(std::move(steps));
    if (!before.status.ok()) return OnFailure(phases, before);
    KERNIX_RETURN_IF_ERROR(Take(before));
    Step host_compile = phases.host_compile;
    AddInputs(host_compile, outputs_);
    if (UsesEarlierBuilds()) {
      const auto& pass = preprocessing_.passes.at(phases.host_pass);
      const bool may_be_split = pass.split && !phases.shows_unused;
      host_ = compiler_.compiled_preambles_.Prepare(
          may_be_split ? SplitHostCompile(host_compile, phases.host_text, pass.split->code_line) : std::nullopt,
          host_compile.reuse->dependencies.front(), *run_.toolchain, run_.askers->First());
      host_compile.faster = host_.faster;
    }
    PlanEnd compiled = RunPhases({std::move(host_compile)});
    if (!compiled.status.ok()) return OnFailure(phases, compiled);
    if (!compiled.printed.empty() && MayHoldOtherLines(phases)) {
      compiled.outputs.clear();
      return RunAgainForLines(phases);
    }
    KERNIX_RETURN_IF_ERROR(Take(compiled));
    return End(/*warns=*/!compiled.printed.empty());
  }

  // Adds what steps have made and printed.
  absl::Status Take(PlanEnd& end) {
    outputs_.merge(end.outputs);
    KERNIX_ASSIGN_OR_RETURN(printed_, Hold(held_, exec::MakeContent(StrCat(*printed_, end.printed))));
    return absl::OkStatus();
  }

  // Whether what cicc has made for the host may name lines of another text: messages would show them.
  bool MayHoldOtherLines(const Phases& phases) const {
    return std::any_of(phases.compile.begin(), phases.compile.end(), [&](const Step& step) {
      return step.reuse && !step.reuse->device_unit.empty() &&
             (step.reuse->host_bodies_count || has_reused_device_code_);
    });
  }

  // What was preprocessed has the lines.
  exec::ActionEnd RunAgainForLines(Phases& phases) {
    compiler_.compiles_["again_for_lines"].Add();
    if (preprocessed_.empty()) {
      LetGo();
      return Compile(compiler_, step_, run_, /*lines_count=*/true).Run();
    }
    LetLinesCount(phases);
    outputs_ = preprocessed_;
    printed_ = printed_before_;
    return RunPreprocessed(phases);
  }

  static void LetLinesCount(Phases& phases) {
    for (Step& step : phases.compile) {
      if (step.reuse) step.reuse->device_unit.clear();
    }
  }

  exec::ActionEnd End(bool warns) {
    compiler_.compiles_["phases"].Add();
    exec::ActionResult result = Result();
    if (run_.observer != nullptr && !result.output.empty()) run_.observer->OnOutput(result.output);
    IgnoreExceptions("nothing to learn", [&] { Teach(warns); });
    return result;
  }

  // The runtime header comes first: with it, preambles change.
  void Teach(bool warns) {
    if (!UsesEarlierBuilds()) return;
    const UserId user = run_.askers->First();
    if (choice_.to_learn) {
      return compiler_.stand_ins_.Teach({std::move(phases_), *choice_.to_learn, run_.toolchain, user});
    }
    compiler_.preambles_.Teach(preprocessing_, outputs_, run_.toolchain);
    if (!warns) compiler_.compiled_preambles_.Teach(host_, outputs_.at(step_.object), run_.toolchain, user);
  }

  // The outputs that a command would have brought back.
  exec::ActionResult Result() {
    exec::ActionResult result;
    result.output = *printed_;
    std::vector<std::string> read;
    for (const std::string& path : phases_.dependencies) Append(read, ParseDependencyFile(*outputs_.at(path)));
    if (const auto& known = choice_.known) read.insert(read.end(), known->files.begin(), known->files.end());
    outputs_[step_.nvcc->dependencies] = exec::MakeContent(MakeDependencyFile(step_.object, read));
    for (const std::string& path : step_.action.outputs) result.outputs[path] = outputs_.at(path);
    return result;
  }

  PlanEnd RunPhases(std::vector<Step> steps) {
    StepRun run = run_;
    run.outputs = held_;
    run.observer = &observer_;
    PlanEnd end = RunPlan(
        {.steps = std::move(steps), .toolchain = run_.toolchain, .mode = run_.mode, .in_order = true},
        [this](const Step& step, const StepRun& phase) { return compiler_.commands_.RunStep(step, phase); },
        std::move(run));
    if (end.reused.contains(StepKind::kCicc)) has_reused_device_code_ = true;
    return end;
  }

  // All that nvcc runs before the phase that failed has succeeded. So what the phase says is nvcc's message, if it has
  // read what nvcc's reads, or if the rest of the runtime header cannot change it.
  exec::ActionEnd OnFailure(Phases& phases, PlanEnd& end) {
    if (WouldEndAgain(end.status)) return end.status;
    PlanEnd ended = std::exchange(end, {});
    ended.outputs.clear();  // before all is made again
    if (ended.failed == nullptr) return RunWhole("whole_after_failure");
    const Step& failed = *ended.failed;
    const v1::ErrorDetail detail = GetErrorDetail(ended.status);
    const std::string& words = detail.compiler_output();
    const bool is_cicc = failed.kind == StepKind::kCicc;
    const bool lacks_lines = is_cicc && failed.reuse->host_bodies_count && !failed.reuse->device_unit.empty();
    if (lacks_lines || (failed.kind == StepKind::kHostCompile && MayHoldOtherLines(phases))) {
      return RunAgainForLines(phases);
    }
    printed_ = exec::MakeContent(StrCat(*printed_, ended.printed));
    if (LacksHeader(words)) return Fail(detail);
    if (failed.kind == StepKind::kPtxas) return OnPtxasFailed(phases, failed, detail);
    if (!NamesError(words)) return RunWhole("whole_after_failure");
    if (IsSameWithWholeHeader(choice_, words)) return Fail(detail);
    LetGo();
    compiler_.stand_ins_.CountWhole("whole_after_error");
    return RunWithWholeHeader();
  }

  // It speaks of lines of the PTX, which is that of a whole call.
  exec::ActionEnd OnPtxasFailed(const Phases& phases, const Step& failed, v1::ErrorDetail detail) {
    const auto is_cicc = [](const Step& step) { return step.kind == StepKind::kCicc; };
    if (std::count_if(phases.compile.begin(), phases.compile.end(), is_cicc) == 1) {
      detail.set_compiler_output(AsInWholeCall(failed, detail.compiler_output()));
    }
    return Fail(detail);
  }

  // A phase's error is the message, after what the phases before it have printed.
  exec::ActionEnd Fail(const v1::ErrorDetail& detail) {
    compiler_.compiles_["phases"].Add();
    exec::ActionResult result;
    result.exit_code = detail.exit_code();
    result.output = StrCat(*printed_, detail.compiler_output());
    if (run_.observer != nullptr) run_.observer->OnOutput(result.output);
    return result;
  }

  // Of what was made, before all is made again.
  void LetGo() {
    outputs_.clear();
    preprocessed_.clear();
    printed_ = exec::MakeContent("");
    preprocessing_ = {};
    host_ = {};
    choice_.known = nullptr;
  }

  exec::ActionEnd RunWhole(std::string_view reason) {
    compiler_.compiles_[reason].Add();
    LetGo();
    return compiler_.commands_.RunStep(step_, run_);
  }

  NvccCompiler& compiler_;
  const Step& step_;
  const StepRun& run_;
  const HeldOutputsPtr held_;
  const bool lines_count_;
  MutedStep observer_{run_.observer};    // of phases
  bool has_reused_device_code_ = false;  // that was made for another compile
  Phases phases_;                        // with the whole header
  StandInChoice choice_;
  Preprocessing preprocessing_;
  CompiledPreambles::Prepared host_;  // for its host compile
  PlanOutputs outputs_;               // of what has ended, and what that has printed
  exec::Content printed_ = exec::MakeContent("");
  PlanOutputs preprocessed_;  // if that has ended before the other steps began, and what it has printed
  exec::Content printed_before_;
};

exec::ActionEnd NvccCompiler::Run(const Step& step, const StepRun& run) { return Compile(*this, step, run).Run(); }

void NvccCompiler::Register(MetricsRegistry& registry) const {
  compiles_.Register(registry);
  stand_ins_.Register(registry);
  preambles_.Register(registry);
}

}  // namespace kernix::build
