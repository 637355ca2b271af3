// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/nvcc_compiler.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/faster_action.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/unit_texts.h"
#include "daemon/exec/action_digest.h"
#include "daemon/plan/nvcc_phases.h"
#include "daemon/plan/slim_phases.h"

namespace kernix::build {
namespace {

using language::RuntimeChoice;
using language::RuntimeParts;

// Shows phases to the observer of the step that they make up.
class PhaseObserver : public PlanObserver {
 public:
  explicit PhaseObserver(StepObserver* observer) : observer_(observer) {}
  void OnQueued(const std::string&, int actions_ahead) override {
    if (observer_ != nullptr) observer_->OnQueued(actions_ahead);
  }
  void OnStarted(const exec::Action& action) override {
    if (observer_ != nullptr) observer_->OnStarted(action);
  }
  void OnOutput(std::string_view) override {}
  void OnStepDone(int) override {}
  void OnStepEnded(const StepTimes& times) override {
    const bool was_run = times.way == cache::StepWay::kRun || times.way == cache::StepWay::kRemote;
    if (!was_run && times.name.starts_with("cicc")) has_reused_device_code_ = true;
    if (observer_ != nullptr) observer_->OnStepEnded(times);
  }

  // Whether a cicc's result was made for another compile.
  bool has_reused_device_code() const { return has_reused_device_code_; }

 private:
  StepObserver* const observer_;
  std::atomic<bool> has_reused_device_code_ = false;
};

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

bool IsCudafe(const Step& step) { return step.action.argv.front().ends_with("cudafe++"); }

// Whether all places that cudafe++ names are lines of the user's sources, "k.cu(3): error: ...", outside of templates.
// nvcc would say the same of them.
bool IsAboutUsersLines(std::string_view output) {
  size_t places = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(output), '\n')) {
    if (absl::StrContains(line, "detected during")) return false;
    const size_t end = line.find("): ");
    const size_t begin = end == line.npos ? line.npos : line.rfind('(', end);
    if (begin == line.npos || absl::StartsWith(line, " ")) continue;
    if (absl::StrContains(line.substr(0, begin), '/')) return false;
    ++places;
  }
  return places > 0;
}

// Whether each error in cudafe++'s output is one that the rest of the runtime header cannot mend: of punctuation, or of
// a name that it does not declare, since a stand-in was chosen by all names of the unit.
bool IsSameWithWholeHeader(std::string_view output) {
  constexpr absl::string_view kError = "): error: ";
  for (const absl::string_view line : absl::StrSplit(ToAbsl(output), '\n')) {
    const size_t at = line.find(kError);
    if (at == line.npos) continue;
    const absl::string_view text = line.substr(at + kError.size());
    const bool is_unknown_name = absl::StartsWith(text, "identifier ") && absl::EndsWith(text, " is undefined");
    const bool is_assertion = absl::StartsWith(text, "static assertion failed");
    if (!is_unknown_name && !is_assertion && !absl::StartsWith(text, "expected a")) return false;
  }
  return true;
}

// Whether the preprocessor has ended at an #include that leads nowhere, which it does in each pass.
bool LacksHeader(std::string_view output) {
  return absl::StrContains(ToAbsl(output), ": No such file or directory") &&
         absl::StrContains(ToAbsl(output), "compilation terminated.");
}

bool IsPtxas(const Step& step) { return step.action.argv.front().ends_with("ptxas"); }

// What ptxas says in a whole call for one architecture, in which the PTX is unit.ptx, not unit.compute_90.ptx.
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

// One compile. The callbacks hold references to it.
class NvccCompiler::Compile : public std::enable_shared_from_this<Compile> {
 public:
  // `lines_count`: what serves may not show lines of another text of the same code.
  Compile(NvccCompiler& compiler, const Step& step, StepRunner::Run run, bool lines_count = false)
      : compiler_(compiler),
        step_(step),
        run_(std::move(run)),
        held_(run_.outputs != nullptr ? run_.outputs->ForPart() : nullptr),
        lines_count_(lines_count) {}

  void Start() {
    if (run_.mode == CompileMode::kWhole) return RunWhole(compiler_.not_wanted_);
    exec::Action question = DryRunOf(step_);
    const Digest digest = exec::DigestOfAction(question, {}).hash;
    if (const auto answer = compiler_.DryRun(digest)) return RunPhases(*answer);
    compiler_.runner_.RunCommand(
        question, {.askers = run_.askers,
                   .observer = &question_observer_,
                   .cancellation = run_.cancellation,
                   .done = [self = shared_from_this(), digest](absl::StatusOr<exec::ActionResult> result) {
                     self->OnDryRun(digest, std::move(result));
                   }});
  }

 private:
  using Next = void (Compile::*)(PlanEnd&);

  void OnDryRun(const Digest& digest, absl::StatusOr<exec::ActionResult> result) {
    Guard([&] {
      if (!result.ok() && WouldEndAgain(result.status())) return run_.done(result.status());
      if (!result.ok() || result->exit_code != 0) return RunWhole(compiler_.not_understood_);
      if (IsStillTheTool()) compiler_.KeepDryRun(digest, result->output);
      RunPhases(result->output);
    });
  }

  bool UsesEarlierBuilds() const { return run_.toolchain != nullptr && run_.mode == CompileMode::kFast; }

  // The question's digest names the tool that was identified.
  bool IsStillTheTool() const { return run_.toolchain == nullptr || Unchanged(compiler_.env_, run_.toolchain->files); }

  ProgramPlace Programs() const {
    const bool beside_host = run_.toolchain != nullptr && run_.toolchain->cuda.has_value() &&
                             run_.toolchain->cuda->programs_beside_host_compiler;
    return beside_host ? ProgramPlace::kBesideHostCompiler : ProgramPlace::kBesideNvcc;
  }

  void RunPhases(const std::string& dry_run) {
    std::optional<Phases> phases = PhasesOf(step_, dry_run, Programs());
    if (!phases) return RunWhole(compiler_.not_understood_);
    phases_ = *std::move(phases);
    if (lines_count_) {
      for (Step& step : phases_.compile) {
        if (step.reuse) step.reuse->device_unit.clear();
      }
    }
    if (run_.mode == CompileMode::kAnew) return RunWithWholeHeader(compiler_.whole_forced_);
    if (!MayTakeStandIn(phases_) || run_.toolchain == nullptr) return RunWithWholeHeader(compiler_.whole_not_possible_);
    const KnownRuntimePtr known = Find(RuntimeParts());
    if (known->passes.empty()) return RunWithWholeHeader(compiler_.whole_not_known_);
    const RuntimeChoice guess = GuessRuntime(compiler_.env_, *known, phases_, *run_.toolchain);
    // If the guess was wrong, that was due to the sources, unless it has not seen all that they include.
    const bool has_seen_all = guess.parts != language::AllRuntimeParts();
    head_ = {run_.askers->First(), HeadOf(phases_, has_seen_all)};
    if (guess.full || compiler_.NeedsWholeHeader(head_)) return RunWithWholeHeader(compiler_.whole_by_names_);
    PreprocessWithStandIn(guess.parts);
  }

  // What is known of a stand-in. The rest will be learned after this compile.
  KnownRuntimePtr Find(RuntimeParts parts) {
    KnownRuntimePtr known = compiler_.knowledge_.Find(phases_, parts, *run_.toolchain);
    if (known->passes.size() < phases_.preprocess.size()) to_learn_ = parts;
    return known;
  }

  // To see whether it serves. If not, the whole header does: no other stand-in is tried.
  void PreprocessWithStandIn(RuntimeParts parts) {
    known_ = Find(parts);
    if (known_->passes.empty()) return RunWithWholeHeader(compiler_.whole_not_known_);
    parts_ = parts;
    slim_ = WithStandIn(phases_, known_->passes, parts);
    preprocessing_ = compiler_.preambles_.Prepare(slim_, *run_.toolchain, run_.askers->First(), held_);
    RunPreprocessing(&Compile::OnSlimPreprocessed);
  }

  void OnSlimPreprocessed(PlanEnd& end) {
    const RuntimeChoice choice = ChooseRuntime(compiler_.env_, *known_, slim_, end.outputs, *run_.toolchain);
    if (choice.full || !parts_.Has(choice.parts)) {
      compiler_.KeepNeed(head_);
      return RunWithWholeHeader(compiler_.whole_after_preprocessing_);
    }
    compiler_.slim_.Add();
    running_ = &slim_;
    RunCompile(end);
  }

  void RunWithWholeHeader(MetricCounter& reason) {
    reason.Add();
    known_ = nullptr;
    running_ = &phases_;
    if (UsesEarlierBuilds()) {
      preprocessing_ = compiler_.preambles_.Prepare(phases_, *run_.toolchain, run_.askers->First(), held_);
    }
    if (preprocessing_.uses_kept()) return RunPreprocessing(&Compile::OnPreprocessed);
    // Each pass goes on by itself.
    compiler_.preambles_.CountPasses(preprocessing_);
    std::vector<Step> steps = phases_.preprocess;
    Append(steps, phases_.compile);
    Run(std::move(steps), &Compile::RunHostCompile);
  }

  void OnPreprocessed(PlanEnd& end) { RunCompile(end); }

  // What comes after preprocessing.
  void RunCompile(PlanEnd& end) {
    compiler_.preambles_.CountPasses(preprocessing_);
    if (!Take(end)) return;
    for (Step& step : running_->compile) AddInputs(step, outputs_);
    Run(running_->compile, &Compile::RunHostCompile);
  }

  void RunHostCompile(PlanEnd& end) {
    if (!Take(end)) return;
    AddInputs(running_->host_compile, outputs_);
    if (!UsesEarlierBuilds()) return Run({running_->host_compile}, &Compile::OnCompiled);
    Step step = running_->host_compile;
    const auto& pass = preprocessing_.passes.at(running_->host_pass);
    const bool may_be_split = pass.split && !running_->shows_unused;
    host_ = compiler_.compiled_preambles_.Prepare(
        may_be_split ? SplitHostCompile(step, running_->host_text, pass.split->code_line) : std::nullopt,
        step.reuse->dependencies.front(), *run_.toolchain, run_.askers->First());
    step.faster = host_.faster;
    Run({std::move(step)}, &Compile::OnCompiled);
  }

  // Adds what steps have made and printed. False: it could not be held, and the compile has ended.
  bool Take(PlanEnd& end) {
    outputs_.merge(end.outputs);
    absl::StatusOr<exec::Content> printed = Hold(held_, exec::MakeContent(StrCat(*printed_, end.printed)));
    if (!printed.ok()) {
      run_.done(printed.status());
      return false;
    }
    printed_ = *std::move(printed);
    return true;
  }

  // With kept preambles, and without them if that fails: then `next` gets what whole passes have made.
  void RunPreprocessing(Next next) {
    next_ = next;
    if (!preprocessing_.uses_kept()) return Run(preprocessing_.steps(), next);
    Run(preprocessing_.steps(), &Compile::OnRestPreprocessed, &Compile::OnRestFailed);
  }

  void OnRestPreprocessed(PlanEnd& end) {
    if (!compiler_.preambles_.Join(preprocessing_, held_, end)) return RunWithoutPreambles();
    (this->*next_)(end);
  }

  void OnRestFailed(PlanEnd& end) {
    if (WouldEndAgain(end.status)) return run_.done(end.status);
    RunWithoutPreambles();
  }

  void RunWithoutPreambles() {
    compiler_.preambles_.CountMisfit();
    for (Preprocessing::Pass& pass : preprocessing_.passes) {
      pass.text = nullptr;
      pass.split.reset();
    }
    Run(preprocessing_.steps(), next_);
  }

  void OnCompiled(PlanEnd& end) {
    if (!end.printed.empty() && MayHoldOtherLines()) {
      compiler_.again_for_lines_.Add();
      return std::make_shared<Compile>(compiler_, step_, run_, /*lines_count=*/true)->Start();
    }
    compiler_.in_phases_.Add();
    if (!end.printed.empty()) host_.to_learn = nullptr;
    if (!Take(end)) return;
    exec::ActionResult result = Result();
    if (run_.observer != nullptr && !result.output.empty()) run_.observer->OnOutput(result.output);
    std::vector<Learning::LessonPtr> lessons;
    (void)CatchExceptions("nothing to learn", [&] {
      lessons = PrepareLessons();
      return absl::OkStatus();
    });
    run_.done(std::move(result));  // without a lesson, this may be the end of the compiler
    for (Learning::LessonPtr& lesson : lessons) {
      if (lesson != nullptr) Learning::Start(std::move(lesson));
    }
  }

  // Whether what cicc has made for the host may name lines of another text: messages would show them.
  bool MayHoldOtherLines() const {
    return std::any_of(running_->compile.begin(), running_->compile.end(), [&](const Step& step) {
      return step.reuse && !step.reuse->device_unit.empty() &&
             (step.reuse->host_bodies_count || observer_.has_reused_device_code());
    });
  }

  // Perhaps null ones. The runtime header comes first: with it, preambles change.
  std::vector<Learning::LessonPtr> PrepareLessons() {
    if (!UsesEarlierBuilds()) return {};
    const UserId user = run_.askers->First();
    if (to_learn_) return {compiler_.knowledge_.Prepare({std::move(phases_), *to_learn_, run_.toolchain, user})};
    return {compiler_.preambles_.PrepareLesson(preprocessing_, outputs_, run_.toolchain),
            compiler_.compiled_preambles_.PrepareLesson(host_, outputs_.at(step_.object), run_.toolchain, user)};
  }

  // What a command would have brought back.
  exec::ActionResult Result() {
    exec::ActionResult result;
    result.output = *printed_;
    std::vector<std::string> read;
    for (const std::string& path : phases_.dependencies) Append(read, ParseDependencyFile(*outputs_.at(path)));
    for (const std::string& path : phases_.preprocessed) Append(read, FilesOfLineMarkers(*outputs_.at(path)));
    if (known_ != nullptr) read.insert(read.end(), known_->files.begin(), known_->files.end());
    outputs_[step_.dependencies] = exec::MakeContent(MakeDependencyFile(step_.object, read));
    for (const std::string& path : step_.action.outputs) result.outputs[path] = outputs_.at(path);
    return result;
  }

  // Runs some of the phases, then calls `next`, or `otherwise` if they fail.
  void Run(std::vector<Step> steps, Next next, Next otherwise = &Compile::OnFailure) {
    RunPlan(
        {.steps = std::move(steps), .toolchain = run_.toolchain, .mode = run_.mode}, run_.askers, compiler_.runner_,
        run_.cancellation, observer_,
        [self = shared_from_this(), next, otherwise](PlanEnd end) {
          self->Guard([&] { (self.get()->*(end.status.ok() ? next : otherwise))(end); });
        },
        run_.looks, held_, run_.share);
  }

  // Of all that follows preprocessing, nvcc runs cudafe++ first. So what that says is nvcc's message, also if cicc has
  // found the error at the same time and earlier.
  void OnFailure(PlanEnd& end) {
    if (WouldEndAgain(end.status)) return run_.done(end.status);
    const bool is_alone = end.failed != nullptr && printed_->empty() && !end.has_printed;
    if (is_alone && LacksHeader(GetErrorDetail(end.status).compiler_output())) {
      return EndWithError(GetErrorDetail(end.status));
    }
    if (!is_alone || running_ == nullptr) return RunWhole(compiler_.phase_failed_);
    if (IsCudafe(*end.failed)) return OnCudafeFailed(end);
    const auto is_same = [&](const Step& step) { return step.action.step == end.failed->action.step; };
    const auto cudafe = std::find_if(running_->compile.begin(), running_->compile.end(), IsCudafe);
    if (cudafe == running_->compile.end() ||
        std::none_of(running_->compile.begin(), running_->compile.end(), is_same)) {
      return RunWhole(compiler_.phase_failed_);
    }
    Step step = *cudafe;
    AddInputs(step, end.outputs);
    if (!step.inputs_from_steps.empty()) return RunWhole(compiler_.phase_failed_);
    // ptxas speaks of lines of the PTX, which is that of a whole call.
    if (IsPtxas(*end.failed) && std::count_if(running_->compile.begin(), running_->compile.end(), IsPtxas) == 1) {
      ptxas_error_ = GetErrorDetail(end.status);
      ptxas_error_->set_compiler_output(AsInWholeCall(*end.failed, ptxas_error_->compiler_output()));
    }
    Run({std::move(step)}, &Compile::OnCudafeEnded, &Compile::OnCudafeFailed);
  }

  void OnCudafeEnded(PlanEnd& end) {
    if (ptxas_error_ && end.printed.empty()) return EndWithError(*ptxas_error_);
    RunWhole(compiler_.phase_failed_);
  }

  void OnCudafeFailed(PlanEnd& end) {
    if (WouldEndAgain(end.status)) return run_.done(end.status);
    const v1::ErrorDetail detail = GetErrorDetail(end.status);
    if (end.failed == nullptr || !IsAboutUsersLines(detail.compiler_output())) return RunWhole(compiler_.phase_failed_);
    // What the stand-in leaves out may be what the line needs.
    if (running_ == &slim_ && !IsSameWithWholeHeader(detail.compiler_output())) {
      outputs_.clear();
      return RunWithWholeHeader(compiler_.whole_after_error_);
    }
    EndWithError(detail);
  }

  // A phase's error is the message.
  void EndWithError(const v1::ErrorDetail& detail) {
    compiler_.in_phases_.Add();
    if (run_.observer != nullptr) run_.observer->OnOutput(detail.compiler_output());
    exec::ActionResult result;
    result.exit_code = detail.exit_code();
    result.output = detail.compiler_output();
    run_.done(std::move(result));
  }

  void RunWhole(MetricCounter& reason) {
    reason.Add();
    compiler_.runner_.RunCommand(step_.action, run_);
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

  NvccCompiler& compiler_;
  const Step step_;
  const StepRunner::Run run_;
  const HeldOutputsPtr held_;
  const bool lines_count_;
  PhaseObserver observer_{run_.observer};
  QuietStep question_observer_{run_.observer};
  Phases phases_;  // with the whole header
  std::optional<RuntimeParts> to_learn_;

  Preprocessing preprocessing_;
  Next next_ = nullptr;  // after it

  // With a stand-in.
  UserHead head_;
  RuntimeParts parts_;
  KnownRuntimePtr known_;  // null: all passes read the whole header
  Phases slim_;

  std::optional<v1::ErrorDetail> ptxas_error_;
  Phases* running_ = nullptr;         // the one of both that is run
  CompiledPreambles::Prepared host_;  // for its host compile
  PlanOutputs outputs_;               // of what has ended, and what that has printed
  exec::Content printed_ = exec::MakeContent("");
};

void NvccCompiler::Submit(const Step& step, StepRunner::Run run) {
  std::make_shared<Compile>(*this, step, std::move(run))->Start();
}

void NvccCompiler::Register(MetricsRegistry& registry) const {
  constexpr char kCompiles[] = "kernix_nvcc_compiles_total";
  constexpr char kCompilesHelp[] = "Compiles by nvcc: in its phases, or by one call of nvcc, and why.";
  registry.AddCounter(kCompiles, kCompilesHelp, in_phases_, {{"how", "phases"}});
  registry.AddCounter(kCompiles, kCompilesHelp, not_wanted_, {{"how", "whole_forced"}});
  registry.AddCounter(kCompiles, kCompilesHelp, not_understood_, {{"how", "whole_not_understood"}});
  registry.AddCounter(kCompiles, kCompilesHelp, phase_failed_, {{"how", "whole_after_failure"}});
  registry.AddCounter(kCompiles, kCompilesHelp, again_for_lines_, {{"how", "again_for_lines"}});
  constexpr char kHeaders[] = "kernix_cuda_runtime_headers_total";
  constexpr char kHeadersHelp[] =
      "Compiles in nvcc's phases: with the parts of cuda_runtime.h that the kernel needs, or with all of it, and why.";
  registry.AddCounter(kHeaders, kHeadersHelp, slim_, {{"how", "parts"}});
  registry.AddCounter(kHeaders, kHeadersHelp, whole_not_possible_, {{"how", "whole_not_possible"}});
  registry.AddCounter(kHeaders, kHeadersHelp, whole_not_known_, {{"how", "whole_not_known_yet"}});
  registry.AddCounter(kHeaders, kHeadersHelp, whole_by_names_, {{"how", "whole_by_names"}});
  registry.AddCounter(kHeaders, kHeadersHelp, whole_after_preprocessing_, {{"how", "whole_after_preprocessing"}});
  registry.AddCounter(kHeaders, kHeadersHelp, whole_forced_, {{"how", "whole_forced"}});
  registry.AddCounter(kHeaders, kHeadersHelp, whole_after_error_, {{"how", "whole_after_error"}});
  preambles_.Register(registry);
}

std::shared_ptr<const std::string> NvccCompiler::DryRun(const Digest& question) {
  const MutexLock lock(mutex_);
  const auto* const found = dry_runs_.Find(question);
  return found == nullptr ? nullptr : *found;
}

void NvccCompiler::KeepDryRun(const Digest& question, const std::string& answer) {
  const MutexLock lock(mutex_);
  dry_runs_.Put(question, std::make_shared<const std::string>(answer));
}

bool NvccCompiler::NeedsWholeHeader(const UserHead& head) {
  const MutexLock lock(mutex_);
  return need_whole_.Find(head) != nullptr;
}

void NvccCompiler::KeepNeed(const UserHead& head) {
  const MutexLock lock(mutex_);
  need_whole_.Put(head, true);
}

}  // namespace kernix::build
