// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/kept_preambles.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/builder/unit_texts.h"
#include "daemon/exec/action_digest.h"

namespace kernix::build {
namespace {

constexpr char kEffect[] = "kernels that begin with these #includes preprocess them each time";

// The places of a preprocessing step's results among its outputs.
const std::string& TextOf(const Step& pass) { return pass.action.outputs[0]; }
const std::string& FilesOf(const Step& pass) { return pass.action.outputs[1]; }

Digest KeyOf(const PreambleForm& form) { return exec::DigestOfAction(form.kept.action, {}).hash; }

Digest UnitOf(const PreambleForm& form, UserId user, const Digest& included_names) {
  CanonicalHasher hasher("kernix-preamble-unit");
  hasher.Field("user", uint64_t{ToNumber(user)});
  hasher.Field("preamble", KeyOf(form));
  hasher.Field("included", included_names);
  return hasher.Finish();
}

Step WithMacros(const PreamblePass& pass, const PreambleForm& form, std::string_view macros) {
  Step rest = pass.rest;
  rest.action.inputs.push_back(exec::MakeInput(kPreambleMacros, StrCat(macros, form.definitions)));
  return rest;
}

// Whether a file is one that only this way of preprocessing reads.
bool IsOurs(const std::string& file) { return IsBelow(file, kPreambleFolder); }

// Whether a preprocessed text may come from one of these files. A whole pass may have left out what it has read before,
// also under another name (`#pragma once`).
bool MayReadAny(const std::vector<std::string>& files, std::string_view text) {
  std::set<std::string> known;
  for (const std::string& file : files) known.insert(Basename(file));
  const std::vector<std::string> read = FilesOfLineMarkers(text);
  return std::any_of(read.begin(), read.end(), [&](const std::string& file) { return known.contains(Basename(file)); });
}

}  // namespace

bool Preprocessing::uses_kept() const {
  return std::any_of(passes.begin(), passes.end(), [](const Pass& pass) { return pass.text != nullptr; });
}

std::vector<Step> Preprocessing::steps() const {
  std::vector<Step> steps;
  for (const Pass& pass : passes) steps.push_back(pass.text != nullptr ? pass.rest : pass.whole);
  return steps;
}

// One preamble to learn.
struct KeptPreambles::Lesson {
  PreamblePass split;
  PreambleForm form;
  exec::Content whole;  // what the whole pass has made
  BuildStart start;
  Digest included_names;
  toolchain::ToolchainPtr toolchain;
  UserId user;
};

void KeptPreambles::Learn(const Lesson& lesson) {
  const Digest key = StepCache::KeyOf(lesson.form.kept, *lesson.toolchain);
  if (!learning_.MayLearn(KeyOf(lesson.form)) || cache_.Find(key, *lesson.toolchain)) return;
  exec::ActionResult made;
  std::vector<std::string> files;
  if (const absl::Status learned = LearnPreamble(lesson, made, files); !learned.ok()) {
    return learning_.NoteFailure(KeyOf(lesson.form), learned, kEffect);
  }
  // The rest of this unit is preprocessed, too: joined, both must be the text of the whole pass.
  const std::string_view macros = *made.outputs.at(lesson.form.macros);
  const absl::StatusOr<PlanOutputs> outputs =
      learning_.RunSteps(lesson.user, {WithMacros(lesson.split, lesson.form, macros)});
  const std::optional<std::string_view> rest =
      outputs.ok() ? RestText(lesson.split, *outputs->at(TextOf(lesson.split.rest))) : std::nullopt;
  if (!rest || MayReadAny(files, *rest) || *lesson.whole != StrCat(*made.outputs.at(lesson.form.text), *rest)) {
    // It says nothing of the preamble, of units of other users, or with other #includes.
    return NoteMisfit(lesson.split.forms, lesson.user, lesson.included_names);
  }
  cache_.Keep(key, lesson.form.kept, *lesson.toolchain, lesson.start, made);
}

// Makes all that is kept: these passes see nothing but the preamble.
absl::Status KeptPreambles::LearnPreamble(const Lesson& lesson, exec::ActionResult& made,
                                          std::vector<std::string>& files) {
  const PreambleForm& form = lesson.form;
  KERNIX_ASSIGN_OR_RETURN(const PlanOutputs outputs,
                          learning_.RunSteps(lesson.user, {lesson.split.macros_before, form.macros_after,
                                                           form.definitions_after, form.alone}));
  files = ParseDependencyFile(*outputs.at(FilesOf(form.macros_after)));
  std::erase_if(files, [&](const std::string& file) { return file == lesson.split.unit || IsOurs(file); });
  const std::optional<std::string_view> text = PreambleText(lesson.split, *outputs.at(TextOf(form.alone)));
  if (!text) return absl::FailedPreconditionError("where their text ends is not known");
  const std::optional<std::string> macros =
      MacrosToAdd(*outputs.at(TextOf(lesson.split.macros_before)), *outputs.at(TextOf(form.macros_after)),
                  *outputs.at(TextOf(form.definitions_after)), EndsInSystemHeader(*text));
  if (!macros) return absl::FailedPreconditionError("where a macro of theirs is defined is not known");
  made.outputs[form.text] = exec::MakeContent(std::string(*text));
  made.outputs[form.macros] = exec::MakeContent(*macros);
  made.outputs[form.files] = exec::MakeContent(MakeDependencyFile("preamble", files));
  return absl::OkStatus();
}

Preprocessing KeptPreambles::Prepare(const Phases& phases, const toolchain::Toolchain& toolchain, UserId user,
                                     const HeldOutputsPtr& outputs) {
  Preprocessing preprocessing{.passes = {}, .user = user, .included_names = HeadOf(phases), .start = cache_.Now()};
  for (size_t i = 0; i < phases.preprocess.size(); ++i) {
    Preprocessing::Pass pass{.whole = phases.preprocess[i],
                             .split = SplitPass(phases, i),
                             .text = {},
                             .files = {},
                             .rest = {},
                             .to_learn = {}};
    if (pass.split && !is_disabled_) UseKept(toolchain, preprocessing, outputs, pass);
    preprocessing.passes.push_back(std::move(pass));
  }
  return preprocessing;
}

void KeptPreambles::UseKept(const toolchain::Toolchain& toolchain, const Preprocessing& preprocessing,
                            const HeldOutputsPtr& outputs, Preprocessing::Pass& pass) {
  for (const PreambleForm& form : pass.split->forms) {
    if (misfits_.Find(UnitOf(form, preprocessing.user, preprocessing.included_names))) {
      pass.split.reset();
      return;
    }
    const std::optional<exec::ActionResult> kept = cache_.Find(StepCache::KeyOf(form.kept, toolchain), toolchain);
    if (!kept) continue;
    absl::StatusOr<exec::Content> text = Hold(outputs, kept->outputs.at(form.text));
    if (!text.ok()) return;
    pass.text = *std::move(text);
    pass.files = ParseDependencyFile(*kept->outputs.at(form.files));
    pass.rest = WithMacros(*pass.split, form, *kept->outputs.at(form.macros));
    return;
  }
  const std::vector<PreambleForm>& forms = pass.split->forms;
  const auto form = std::find_if(forms.begin(), forms.end(),
                                 [&](const PreambleForm& each) { return learning_.MayLearn(KeyOf(each)); });
  if (form != forms.end() && learning_.WasAskedFor(KeyOf(*form))) pass.to_learn = *form;
}

bool KeptPreambles::Join(const Preprocessing& preprocessing, const HeldOutputsPtr& outputs, PlanEnd& end) {
  if (!end.printed.empty()) return false;
  for (const Preprocessing::Pass& pass : preprocessing.passes) {
    if (pass.text == nullptr) continue;
    exec::Content& text = end.outputs.at(TextOf(pass.whole));
    const std::optional<std::string_view> rest = RestText(*pass.split, *text);
    if (!rest) return false;
    if (MayReadAny(pass.files, *rest)) {
      for (const Preprocessing::Pass& each : preprocessing.passes) {
        if (each.split) NoteMisfit(each.split->forms, preprocessing.user, preprocessing.included_names);
      }
      return false;
    }
    absl::StatusOr<exec::Content> joined = Hold(outputs, exec::MakeContent(StrCat(*pass.text, *rest)));
    if (!joined.ok()) return false;
    text = *std::move(joined);
    exec::Content& files = end.outputs.at(FilesOf(pass.whole));
    std::vector<std::string> all = pass.files;
    for (std::string& file : ParseDependencyFile(*files)) {
      if (!IsOurs(file)) all.push_back(std::move(file));
    }
    files = exec::MakeContent(MakeDependencyFile(TextOf(pass.whole), all));
  }
  return true;
}

void KeptPreambles::CountPasses(const Preprocessing& preprocessing) {
  for (const Preprocessing::Pass& pass : preprocessing.passes) {
    passes_[!pass.split ? "none" : pass.text != nullptr ? "kept" : "not_known_yet"].Add();
  }
}

void KeptPreambles::Teach(const Preprocessing& preprocessing, const PlanOutputs& outputs,
                          toolchain::ToolchainPtr toolchain) {
  std::vector<Lesson> lessons;
  for (const Preprocessing::Pass& pass : preprocessing.passes) {
    if (!pass.split || !pass.to_learn) continue;
    lessons.push_back({*pass.split, *pass.to_learn, outputs.at(TextOf(pass.whole)), preprocessing.start,
                       preprocessing.included_names, toolchain, preprocessing.user});
  }
  if (lessons.empty()) return;
  learning_.Teach(*toolchain, [this, lessons = std::move(lessons)] {
    for (const Lesson& lesson : lessons) Learn(lesson);
  });
}

void KeptPreambles::NoteMisfit(const std::vector<PreambleForm>& forms, UserId user, const Digest& included_names) {
  for (const PreambleForm& form : forms) misfits_.Put(UnitOf(form, user, included_names), true);
}

void KeptPreambles::Register(MetricsRegistry& registry) const {
  passes_.Register(registry);
  registry.AddCounter("kernix_preamble_misfits_total",
                      "Compiles that preprocessed again, because a kept preamble did not fit.", does_not_fit_);
}

}  // namespace kernix::build
