// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/slim_phases.h"

#include <algorithm>
#include <utility>

#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "daemon/exec/action_digest.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan_parts.h"

namespace kernix::build {
namespace {

void Replace(std::vector<std::string>& words, const std::string& old, const std::string& text) {
  std::replace(words.begin(), words.end(), old, text);
}

// Just before the toolkit's headers, so that nothing comes between.
void AddStandIn(const Phases& phases, language::RuntimeParts parts, exec::Action& action) {
  action.inputs.push_back(
      exec::MakeInput(StrCat(kSlimFolder, "/", language::kRuntimeHeader), language::SlimRuntimeHeader(parts)));
  const auto toolkit = std::find(action.argv.begin(), action.argv.end(), phases.toolkit_headers);
  action.argv.insert(toolkit, StrCat("-I", kSlimFolder));
}

// Whether a word is one that a probe's answer does not depend on: the architectures that are compiled beside this one,
// or a folder of the load's own files, which are not there.
bool IsOfNoConcern(const std::string& word) {
  for (const std::string_view flag : {"-I", "-iquote"}) {
    if (!word.starts_with(flag)) continue;
    const std::string folder = word.substr(flag.size());
    return !folder.starts_with('/') && !IsBelow(folder, kLinkFolder);
  }
  return word.starts_with(StrCat("-D", kArchitectureList, "="));
}

// `name`: of the outputs.
RuntimeProbe ProbeFor(const Phases& phases, size_t pass, std::string_view name) {
  RuntimeProbe probe{.step = phases.preprocess[pass]};
  exec::Action& action = probe.step.action;
  const std::string unit = StrCat(kProbeFolder, "/probe.cu");
  probe.text = StrCat(kProbeFolder, "/", name, ".ii");
  probe.dependencies = probe.text + ".d";
  action.step = "learn cuda_runtime.h";
  Replace(action.argv, phases.unit, unit);
  Replace(action.argv, action.outputs[0], probe.text);
  Replace(action.argv, action.outputs[1], probe.dependencies);
  std::erase_if(action.argv, IsOfNoConcern);
  action.argv.emplace_back(language::kRuntimeTextFlag);
  action.inputs = {exec::MakeInput(unit, language::kRuntimeProbe)};
  action.trees = nullptr;
  action.outputs = {probe.text, probe.dependencies};
  return probe;
}

}  // namespace

bool MayTakeStandIn(const Phases& phases) {
  const auto searches = [&](const Step& step) {
    return std::count(step.action.argv.begin(), step.action.argv.end(), phases.toolkit_headers) == 1;
  };
  return !phases.shows_unused && !phases.toolkit_headers.empty() &&
         std::all_of(phases.preprocess.begin(), phases.preprocess.end(), searches);
}

Phases WithStandIn(Phases phases, const std::set<size_t>& passes, language::RuntimeParts parts) {
  for (const size_t pass : passes) AddStandIn(phases, parts, phases.preprocess[pass].action);
  if (!passes.contains(phases.host_pass)) return phases;
  Append(phases.host_compile.action.argv, language::HostRuntimeDefinitions(parts));
  return phases;
}

RuntimeProbes ProbesFor(const Phases& phases, size_t pass, language::RuntimeParts parts) {
  RuntimeProbes probes{.whole = ProbeFor(phases, pass, "whole"), .slim = ProbeFor(phases, pass, "slim")};
  AddStandIn(phases, parts, probes.slim.step.action);
  return probes;
}

RuntimeLesson LessonOf(const RuntimeProbes& probes) {
  RuntimeLesson lesson{.names = "names", .slim_files = "slim.d", .files = "files.d"};
  lesson.step = probes.whole.step;
  exec::Action& action = lesson.step.action;
  action.argv = {"kernix-runtime-names", BuildId()};  // another kernixd may read them in another way
  for (const RuntimeProbe* probe : {&probes.whole, &probes.slim}) {
    action.argv.push_back(exec::DigestOfAction(probe->step.action, {}).hash.Hex());
  }
  action.inputs.clear();
  action.outputs = {lesson.names, lesson.slim_files, lesson.files};
  lesson.step.reuse = Reuse{.dependencies = {lesson.files}};
  return lesson;
}

}  // namespace kernix::build
