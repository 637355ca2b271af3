// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/runtime_knowledge.h"

#include <memory>
#include <utility>

#include "common/base/exceptions.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/step_runner.h"
#include "daemon/builder/unit_texts.h"
#include "daemon/exec/action_digest.h"
#include "daemon/plan/tool_places.h"

namespace kernix::build {
namespace {

// Each takes some megabytes.
constexpr size_t kMostRead = 8;

constexpr char kEffect[] = "CUDA compiles read all of cuda_runtime.h";

Digest KeyOf(const RuntimeLesson& lesson) { return exec::DigestOfAction(lesson.step.action, {}).hash; }

// The files that a probe has read, apart from its own inputs.
std::vector<std::string> FilesRead(const RuntimeProbe& probe, const PlanOutputs& outputs) {
  std::vector<std::string> files = ParseDependencyFile(*outputs.at(probe.dependencies));
  for (const exec::InputFile& input : probe.step.action.inputs) std::erase(files, input.path);
  return files;
}

// Returns whether the result is one that a Lesson has kept.
bool AddLesson(const RuntimeLesson& lesson, const exec::ActionResult& kept, KnownRuntime& known) {
  const auto names = language::RuntimeNames::FromText(*kept.outputs.at(lesson.names));
  if (!names.ok()) return false;
  known.names.Add(*names);
  const std::vector<std::string> slim_files = ParseDependencyFile(*kept.outputs.at(lesson.slim_files));
  known.slim_files.insert(slim_files.begin(), slim_files.end());
  const std::vector<std::string> files = ParseDependencyFile(*kept.outputs.at(lesson.files));
  known.files.insert(files.begin(), files.end());
  return true;
}

}  // namespace

// What one question teaches, while it is being learned. The callbacks of plans hold references to it.
class RuntimeKnowledge::Lesson : public Learning::Lesson, public std::enable_shared_from_this<Lesson> {
 public:
  Lesson(std::unique_ptr<Learning::Place> place, RuntimeKnowledge& knowledge, Question question)
      : Learning::Lesson(std::move(place)), knowledge_(knowledge), question_(std::move(question)) {}

  // Learns about one stand-in, and then about the one that the question's unit takes.
  void Start() override {
    (void)CatchExceptions("not learned", [&] { return Ask(); });
  }

 private:
  // Asks about the first pass of which nothing is known.
  absl::Status Ask() {
    const Phases& phases = question_.phases;
    for (size_t pass = 0; pass < phases.preprocess.size(); ++pass) {
      probes_ = ProbesFor(phases, pass, question_.parts);
      lesson_ = LessonOf(probes_);
      const Digest key = StepCache::KeyOf(lesson_.step, *question_.toolchain);
      if (!knowledge_.cache_.Find(key, *question_.toolchain)) return AskProbes();
    }
    return AskAboutMore();
  }

  absl::Status AskProbes() {
    const Digest key = KeyOf(lesson_);
    if (!knowledge_.learning_.MayLearn(key)) return absl::CancelledError("not to be learned");
    if (std::exchange(asked_, key) == key) return absl::UnavailableError("the answer could not be kept");
    start_ = knowledge_.cache_.Now();
    RunSteps(question_.user, {probes_.whole.step, probes_.slim.step},
             [self = shared_from_this()](const PlanEnd& end) { self->OnAnswers(end); });
    return absl::OkStatus();
  }

  // The guess for this unit says which stand-in its next load would take.
  absl::Status AskAboutMore() {
    const KnownRuntimePtr known = knowledge_.Find(question_.phases, question_.parts, *question_.toolchain);
    const language::RuntimeChoice guess = GuessRuntime(knowledge_.env_, *known, question_.phases, *question_.toolchain);
    if (guess.full || question_.parts.Has(guess.parts)) return absl::NotFoundError("nothing more to learn");
    question_.parts = question_.parts | guess.parts;
    return Ask();
  }

  void OnAnswers(const PlanEnd& end) {
    (void)CatchExceptions("not learned", [&] {
      const absl::Status kept = end.status.ok() ? Keep(end.outputs) : end.status;
      if (!kept.ok()) knowledge_.learning_.NoteFailure(asked_, kept, kEffect);
      return kept.ok() ? Ask() : kept;
    });
  }

  absl::Status Keep(const PlanOutputs& outputs) {
    const std::vector<std::string> files = FilesRead(probes_.whole, outputs);
    KERNIX_ASSIGN_OR_RETURN(const language::RuntimeNames names, ReadNames(files, outputs));
    exec::ActionResult result;
    const auto list = [](const std::vector<std::string>& paths) {
      return exec::MakeContent(MakeDependencyFile("cuda_runtime.h", paths));
    };
    result.outputs[lesson_.names] = exec::MakeContent(names.ToText());
    result.outputs[lesson_.slim_files] = list(FilesRead(probes_.slim, outputs));
    result.outputs[lesson_.files] = list(files);
    knowledge_.cache_.Keep(StepCache::KeyOf(lesson_.step, *question_.toolchain), lesson_.step, *question_.toolchain,
                           start_, result);
    return absl::OkStatus();
  }

  absl::StatusOr<language::RuntimeNames> ReadNames(const std::vector<std::string>& files,
                                                   const PlanOutputs& outputs) const {
    std::vector<std::string> headers;
    for (const std::string& file : files) {
      KERNIX_ASSIGN_OR_RETURN(std::string text, knowledge_.env_.ReadFile(BehindLinks(file, lesson_.step.action.links)));
      headers.push_back(std::move(text));
    }
    const language::RuntimeTexts texts = {*outputs.at(probes_.whole.text), *outputs.at(probes_.slim.text)};
    KERNIX_ASSIGN_OR_RETURN(language::RuntimeNames names,
                            language::RuntimeNames::Read({texts}, question_.parts, {headers.begin(), headers.end()}));
    if (names.MayChangeHeaders(kArchitectureList)) {
      return absl::FailedPreconditionError(StrCat("the header depends on ", kArchitectureList));
    }
    return names;
  }

  RuntimeKnowledge& knowledge_;
  Question question_;
  RuntimeProbes probes_;
  RuntimeLesson lesson_;
  Digest asked_;  // the last lesson
  BuildStart start_ = {};
};

KnownRuntimePtr RuntimeKnowledge::Find(const Phases& phases, language::RuntimeParts parts,
                                       const toolchain::Toolchain& toolchain) {
  std::map<size_t, exec::ActionResult> kept;
  RuntimeLesson form;
  for (size_t pass = 0; pass < phases.preprocess.size(); ++pass) {
    form = LessonOf(ProbesFor(phases, pass, parts));
    auto found = cache_.Find(StepCache::KeyOf(form.step, toolchain), toolchain);
    if (found) kept.emplace(pass, *std::move(found));
  }
  return Read(kept, form);
}

KnownRuntimePtr RuntimeKnowledge::Read(const std::map<size_t, exec::ActionResult>& kept, const RuntimeLesson& form) {
  CanonicalHasher hasher("kernix-known-runtime");
  for (const auto& [pass, lesson] : kept) {
    hasher.Field("pass", pass);
    for (const auto& [path, text] : lesson.outputs) hasher.Field(path, *text);
  }
  const Digest key = hasher.Finish();
  {
    const MutexLock lock(mutex_);
    if (const auto found = read_.find(key); found != read_.end()) return found->second;
  }
  auto known = std::make_shared<KnownRuntime>();
  for (const auto& [pass, lesson] : kept) {
    if (AddLesson(form, lesson, *known)) known->passes.insert(pass);
  }
  const MutexLock lock(mutex_);
  if (read_.size() >= kMostRead) read_.clear();
  return read_[key] = std::move(known);
}

Learning::LessonPtr RuntimeKnowledge::Prepare(Question question) {
  std::unique_ptr<Learning::Place> place = learning_.TakePlace(*question.toolchain);
  return place == nullptr ? nullptr : std::make_shared<Lesson>(std::move(place), *this, std::move(question));
}

}  // namespace kernix::build
