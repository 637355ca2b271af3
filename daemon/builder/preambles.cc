// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/preambles.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/exceptions.h"
#include "common/base/strings.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/exec/action_digest.h"

namespace kernix::build {
namespace {

constexpr size_t kMostAskedFor = 1024;
constexpr char kEffect[] = "kernels that begin with these #includes preprocess them each time";

// The places of a preprocessing step's results among its outputs.
const std::string& TextOf(const Step& pass) { return pass.action.outputs[0]; }
const std::string& FilesOf(const Step& pass) { return pass.action.outputs[1]; }

Digest KeyOf(const PreambleForm& form) { return exec::DigestOfAction(form.kept.action, {}).hash; }

// Whether a preprocessed text comes from one of these files. A whole pass may have left out what it has read before.
bool ReadsAny(const std::vector<std::string>& files, std::string_view text) {
  const std::set<std::string_view> known(files.begin(), files.end());
  const std::vector<std::string> read = FilesOfLineMarkers(text);
  return std::any_of(read.begin(), read.end(), [&](const std::string& file) { return known.contains(file); });
}

}  // namespace

bool Preprocessing::uses_kept() const {
  return std::any_of(passes.begin(), passes.end(), [](const Pass& pass) { return pass.text != nullptr; });
}

std::vector<Step> Preprocessing::steps() const {
  std::vector<Step> steps;
  for (const Pass& pass : passes) {
    steps.push_back(pass.text != nullptr ? pass.rest : pass.split ? pass.split->whole : pass.plain);
  }
  return steps;
}

std::vector<Step> Preprocessing::whole_steps() const {
  std::vector<Step> steps;
  for (const Pass& pass : passes) steps.push_back(pass.split ? pass.split->whole : pass.plain);
  return steps;
}

// Learns the macros of some preambles. The callbacks of the plan hold references to it.
class Preambles::Lesson : public Learning::Lesson, public std::enable_shared_from_this<Lesson>, public PlanObserver {
 public:
  struct Pass {
    PreamblePass split;
    PreambleForm form;    // to learn
    exec::Content whole;  // what the whole pass has made
  };

  Lesson(Preambles& preambles, std::vector<Pass> passes, BuildStart start, toolchain::ToolchainPtr toolchain,
         UserId user)
      : preambles_(preambles),
        passes_(std::move(passes)),
        start_(start),
        toolchain_(std::move(toolchain)),
        user_(user) {}

  void Start() override {
    Plan plan;
    for (const Pass& pass : passes_) {
      plan.steps.push_back(pass.split.macros_before);
      plan.steps.push_back(pass.form.macros_after);
    }
    const absl::Status started = CatchExceptions("not learned", [&] {
      RunPlan(std::move(plan), user_, preambles_.runner_, /*max_parallel=*/1, preambles_.learning_.stop(), *this,
              [self = shared_from_this()](PlanEnd end) { self->OnMacros(end); });
      return absl::OkStatus();
    });
    if (!started.ok()) preambles_.learning_.End();
  }

  void OnQueued(const std::string&, int) override {}
  void OnStarted(const exec::Action&) override {}
  void OnOutput(std::string_view) override {}
  void OnStepDone(int) override {}

 private:
  void OnMacros(const PlanEnd& end) {
    (void)CatchExceptions("not kept", [&] {
      for (const Pass& pass : passes_) {
        const absl::Status kept = end.status.ok() ? Keep(pass, end) : end.status;
        if (!kept.ok()) preambles_.learning_.NoteFailure(KeyOf(pass.form), kept, kEffect);
      }
      return absl::OkStatus();
    });
    preambles_.learning_.End();
  }

  absl::Status Keep(const Pass& pass, const PlanEnd& end) {
    const std::optional<std::string_view> text = PreambleText(*pass.whole);
    if (!text) return absl::FailedPreconditionError("the end of the unit's #includes is not found in their text");
    if (!end.printed.empty()) return absl::FailedPreconditionError("the compiler warns of the unit's #includes");
    const PreambleForm& form = pass.form;
    std::vector<std::string> files = ParseDependencyFile(*end.outputs.at(FilesOf(form.macros_after)));
    std::erase(files, pass.split.unit);
    exec::ActionResult result;
    const auto add = [&](const std::string& path, std::string content) {
      result.outputs[path] = std::make_shared<const std::string>(std::move(content));
    };
    const std::string& before = *end.outputs.at(TextOf(pass.split.macros_before));
    add(form.text, std::string(*text));
    add(form.macros, MacrosToAdd(before, *end.outputs.at(TextOf(form.macros_after))));
    add(form.files, MakeDependencyFile("preamble", files));
    preambles_.cache_.Keep(form.kept, *toolchain_, start_, result);
    return absl::OkStatus();
  }

  Preambles& preambles_;
  const std::vector<Pass> passes_;
  const BuildStart start_;
  const toolchain::ToolchainPtr toolchain_;
  const UserId user_;
};

void Preambles::UseKept(const toolchain::Toolchain& toolchain, Preprocessing::Pass& pass) {
  for (const PreambleForm& form : pass.split->forms) {
    const std::optional<exec::ActionResult> kept = cache_.Find(form.kept, toolchain);
    if (!kept) continue;
    pass.text = kept->outputs.at(form.text);
    pass.files = ParseDependencyFile(*kept->outputs.at(form.files));
    pass.rest = pass.split->rest;
    pass.rest.action.inputs.push_back(
        exec::MakeInput(kPreambleMacros, StrCat(*kept->outputs.at(form.macros), form.definitions)));
    return;
  }
}

Preprocessing Preambles::Prepare(const Phases& phases, const toolchain::Toolchain& toolchain) {
  Preprocessing preprocessing{.passes = {}, .start = cache_.Now()};
  for (size_t i = 0; i < phases.preprocess.size(); ++i) {
    Preprocessing::Pass pass{
        .plain = phases.preprocess[i], .split = SplitPass(phases, i), .text = {}, .files = {}, .rest = {}};
    if (pass.split) UseKept(toolchain, pass);
    (!pass.split ? none_ : pass.text != nullptr ? kept_ : not_known_).Add();
    preprocessing.passes.push_back(std::move(pass));
  }
  return preprocessing;
}

bool Preambles::Join(const Preprocessing& preprocessing, PlanEnd& end) {
  bool is_certain = end.printed.empty();
  for (const Preprocessing::Pass& pass : preprocessing.passes) {
    if (!is_certain) break;
    if (pass.text == nullptr) continue;
    exec::Content& text = end.outputs.at(TextOf(pass.plain));
    const std::optional<std::string_view> rest = RestText(*text);
    is_certain = rest && !ReadsAny(pass.files, *rest);
    if (!is_certain) continue;
    text = std::make_shared<const std::string>(StrCat(*pass.text, *rest));
    exec::Content& files = end.outputs.at(FilesOf(pass.plain));
    std::vector<std::string> all = pass.files;
    for (std::string& file : ParseDependencyFile(*files)) {
      if (file != kPreambleMacros) all.push_back(std::move(file));
    }
    files = std::make_shared<const std::string>(MakeDependencyFile(TextOf(pass.plain), all));
  }
  if (!is_certain) does_not_fit_.Add();
  return is_certain;
}

std::shared_ptr<Learning::Lesson> Preambles::PrepareLesson(const Preprocessing& preprocessing,
                                                           const PlanOutputs& outputs,
                                                           toolchain::ToolchainPtr toolchain, UserId user) {
  std::vector<Lesson::Pass> passes;
  for (const Preprocessing::Pass& pass : preprocessing.passes) {
    if (!pass.split || pass.text != nullptr) continue;
    const std::vector<PreambleForm>& forms = pass.split->forms;
    const auto form = std::find_if(forms.begin(), forms.end(),
                                   [&](const PreambleForm& each) { return learning_.MayLearn(KeyOf(each)); });
    const bool is_for_any_values = form == forms.begin();
    if (form != forms.end() && !is_for_any_values && !WasAskedFor(KeyOf(*form))) continue;
    if (form != forms.end()) passes.push_back({*pass.split, *form, outputs.at(TextOf(pass.plain))});
  }
  if (passes.empty()) return nullptr;
  auto lesson = std::make_shared<Lesson>(*this, std::move(passes), preprocessing.start, std::move(toolchain), user);
  return learning_.Begin() ? lesson : nullptr;
}

bool Preambles::WasAskedFor(const Digest& form) {
  const MutexLock lock(mutex_);
  if (asked_for_.size() >= kMostAskedFor) asked_for_.clear();
  return !asked_for_.insert(form).second;
}

void Preambles::Register(MetricsRegistry& registry) const {
  constexpr char kName[] = "kernix_preambles_total";
  constexpr char kHelp[] =
      "Passes of the preprocessor in nvcc's phases: with the kept result of the #includes that the unit begins with, "
      "or "
      "without one, and why.";
  registry.AddCounter(kName, kHelp, kept_, {{"how", "kept"}});
  registry.AddCounter(kName, kHelp, not_known_, {{"how", "not_known_yet"}});
  registry.AddCounter(kName, kHelp, does_not_fit_, {{"how", "does_not_fit"}});
  registry.AddCounter(kName, kHelp, none_, {{"how", "none"}});
}

}  // namespace kernix::build
