// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/runtime_knowledge.h"

#include <memory>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/unit_texts.h"
#include "daemon/exec/action_digest.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

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

void RuntimeKnowledge::Teach(Question question) {
  const RuntimeLesson first = LessonOf(ProbesFor(question.phases, 0, question.parts));
  if (!learning_.WasAskedFor(KeyOf(first))) return;
  const toolchain::ToolchainPtr toolchain = question.toolchain;
  learning_.Teach(*toolchain, [this, question = std::move(question)] { Learn(question); });
}

void RuntimeKnowledge::Learn(Question question) {
  while (LearnPasses(question)) {
    // The guess for this unit says which stand-in its next load would take.
    const KnownRuntimePtr known = Find(question.phases, question.parts, *question.toolchain);
    const language::RuntimeChoice guess = GuessRuntime(env_, *known, question.phases, *question.toolchain);
    if (guess.full || question.parts.Has(guess.parts)) return;
    question.parts = question.parts | guess.parts;
  }
}

bool RuntimeKnowledge::LearnPasses(const Question& question) {
  for (size_t pass = 0; pass < question.phases.preprocess.size(); ++pass) {
    const RuntimeProbes probes = ProbesFor(question.phases, pass, question.parts);
    const RuntimeLesson lesson = LessonOf(probes);
    const Digest key = StepCache::KeyOf(lesson.step, *question.toolchain);
    if (cache_.Find(key, *question.toolchain)) continue;
    if (!learning_.MayLearn(KeyOf(lesson))) return false;
    const BuildStart start = cache_.Now();
    const absl::StatusOr<exec::ActionResult> answer = Ask(probes, lesson, question);
    if (!answer.ok()) {
      learning_.NoteFailure(KeyOf(lesson), answer.status(), kEffect);
      return false;
    }
    cache_.Keep(key, lesson.step, *question.toolchain, start, *answer);
    if (!cache_.Find(key, *question.toolchain)) return false;  // it could not be kept
  }
  return true;
}

absl::StatusOr<exec::ActionResult> RuntimeKnowledge::Ask(const RuntimeProbes& probes, const RuntimeLesson& lesson,
                                                         const Question& question) {
  KERNIX_ASSIGN_OR_RETURN(const PlanOutputs outputs,
                          learning_.RunSteps(question.user, {probes.whole.step, probes.slim.step}, /*may_print=*/true));
  const std::vector<std::string> files = FilesRead(probes.whole, outputs);
  std::vector<std::string> headers;
  for (const std::string& file : files) {
    KERNIX_ASSIGN_OR_RETURN(std::string text, ReadFileOf(env_, lesson.step.action, *question.toolchain, file));
    headers.push_back(std::move(text));
  }
  const language::RuntimeTexts texts = {*outputs.at(probes.whole.text), *outputs.at(probes.slim.text)};
  KERNIX_ASSIGN_OR_RETURN(const language::RuntimeNames names,
                          language::RuntimeNames::Read({texts}, question.parts, {headers.begin(), headers.end()}));
  if (names.MayChangeHeaders(kArchitectureList)) {
    return absl::FailedPreconditionError(StrCat("the header depends on ", kArchitectureList));
  }
  const auto list = [](const std::vector<std::string>& paths) {
    return exec::MakeContent(MakeDependencyFile("cuda_runtime.h", paths));
  };
  exec::ActionResult answer;
  answer.outputs[lesson.names] = exec::MakeContent(names.ToText());
  answer.outputs[lesson.slim_files] = list(FilesRead(probes.slim, outputs));
  answer.outputs[lesson.files] = list(files);
  return answer;
}

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
  if (std::optional<KnownRuntimePtr> found = read_.Find(key)) return *std::move(found);
  auto known = std::make_shared<KnownRuntime>();
  for (const auto& [pass, lesson] : kept) {
    if (AddLesson(form, lesson, *known)) known->passes.insert(pass);
  }
  read_.Put(key, known);
  return known;
}

}  // namespace kernix::build
