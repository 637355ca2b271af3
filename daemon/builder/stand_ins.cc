// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/stand_ins.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/failure.h"
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

StandInChoice StandIns::Guess(const Phases& phases, const toolchain::ToolchainPtr& toolchain) {
  StandInChoice guess;
  const auto whole = [&](std::string_view reason) {
    CountWhole(reason);
    guess.known = nullptr;
    return guess;
  };
  if (is_disabled_ || toolchain == nullptr || !MayTakeStandIn(phases)) return whole("whole_not_possible");
  const auto take = [&](language::RuntimeParts parts) {
    guess.parts = parts;
    guess.known = Find(phases, parts, *toolchain);
    if (guess.known->passes.size() < phases.preprocess.size()) guess.to_learn = parts;
    return !guess.known->passes.empty();
  };
  if (!take({})) return whole("whole_not_known_yet");
  const language::RuntimeChoice choice = GuessRuntime(env_, *guess.known, phases, *toolchain);
  if (choice.full) return whole("whole_by_names");
  bool is_known = take(choice.parts);
  const language::RuntimeParts needed = guess.known->names.needed();
  if (!guess.parts.Has(needed)) is_known = take(guess.parts | needed);
  return is_known ? guess : whole("whole_not_known_yet");
}

bool StandIns::Serves(StandInChoice& guess, const Phases& slim, const PlanOutputs& preprocessed,
                      const toolchain::Toolchain& toolchain) {
  const language::RuntimeChoice choice = ChooseRuntime(env_, *guess.known, slim, preprocessed, toolchain);
  const bool serves = !choice.full && guess.parts.Has(choice.parts);
  compiles_[serves ? "parts" : "whole_after_preprocessing"].Add();
  guess.has_std = choice.has_std;
  return serves;
}

void StandIns::Teach(Question question) {
  const RuntimeLesson first = LessonOf(ProbesFor(question.phases, 0, question.parts));
  if (!learning_.WasAskedFor(KeyOf(first))) return;
  const toolchain::ToolchainPtr toolchain = question.toolchain;
  learning_.Teach(*toolchain, [this, question = std::move(question)] { Learn(question); });
}

void StandIns::Learn(Question question) {
  while (LearnPasses(question)) {
    // The guess for this unit says which stand-in its next load would take.
    const KnownRuntimePtr known = Find(question.phases, question.parts, *question.toolchain);
    const language::RuntimeChoice guess = GuessRuntime(env_, *known, question.phases, *question.toolchain);
    if (guess.full || question.parts.Has(guess.parts)) return;
    question.parts = question.parts | guess.parts;
  }
}

bool StandIns::LearnPasses(const Question& question) {
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

absl::StatusOr<exec::ActionResult> StandIns::Ask(const RuntimeProbes& probes, const RuntimeLesson& lesson,
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

KnownRuntimePtr StandIns::Find(const Phases& phases, language::RuntimeParts parts,
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

KnownRuntimePtr StandIns::Read(const std::map<size_t, exec::ActionResult>& kept, const RuntimeLesson& form) {
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

namespace {

// Whether what a compiler says quotes a name that a stand-in lacks: "identifier "max" is undefined".
bool QuotesAnyOf(const language::RuntimeNames& names, absl::string_view text) {
  const std::vector<std::string> pieces = absl::StrSplit(text, absl::ByAnyChar("\"'"));
  if (pieces.size() % 2 == 0) return true;  // an apostrophe: what is quoted is not known
  for (size_t quoted = 1; quoted < pieces.size(); quoted += 2) {
    std::deque<std::string> storage;
    language::Lexer lexer(pieces[quoted], storage);
    for (language::Token token; lexer.Next(token);) {
      if (token.IsIdentifier() && names.Find(token.text) != language::RuntimeNames::Takes()) return true;
    }
  }
  return false;
}

}  // namespace

bool IsSameWithWholeHeader(const StandInChoice& stand_in, std::string_view words) {
  if (stand_in.known == nullptr) return true;
  // The stand-in was chosen by all names of the unit, so an error changes only if it quotes a name that the stand-in
  // lacks, which the unit does not have, or lists what nobody names: operators, and names like an unknown one.
  for (const absl::string_view line : absl::StrSplit(ToAbsl(words), '\n')) {
    if (absl::StrContains(line, "did you mean") || absl::StrContains(line, "suggested alternative")) return false;
    const size_t at = line.find(kErrorMark);
    if (at == line.npos) continue;
    const absl::string_view text = line.substr(at);
    if ((stand_in.has_std && absl::StrContains(text, "operator")) || QuotesAnyOf(stand_in.known->names, text))
      return false;
  }
  return true;
}

}  // namespace kernix::build
