// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/plan_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/strings.h"
#include "common/flags/tables.h"

namespace kernix::build {
namespace {

using flags::Meaning;

constexpr char kUnit[] = "kernix-unit/handler.cc";
constexpr char kUnitText[] = "#include \"brainevent/internal/handler_runtime.h\"\n";
constexpr uint64_t kMemory = 256ull << 20;

// Whether a flag may change how the handlers' part meets the user's code, or what debuggers and sanitizers see of it.
// The user's macros, warnings, optimisations and processor are for the user's code.
bool ConcernsHandlers(const flags::Flag& flag) {
  switch (flag.meaning()) {
    case Meaning::kDefine:
    case Meaning::kUndefine:
      return flag.value.starts_with('_');  // of the compiler's library
    case Meaning::kStandard:
    case Meaning::kProcessor:
    case Meaning::kProcessRounding:
      return false;
    default:
      break;
  }
  constexpr std::string_view kOthers[] = {"-W", "-w", "-O", "-pedantic", "-fopenmp", "-pthread", "-fwhole-program"};
  return std::none_of(std::begin(kOthers), std::end(kOthers),
                      [&](std::string_view begin) { return flag.text().starts_with(begin); });
}

std::vector<std::string> FlagsForHandlers(const BuildRequest& request) {
  std::vector<std::string> words;
  for (const flags::Flag& flag : flags::ReadAll(flags::kCompiler, request.host_flags)) {
    if (ConcernsHandlers(flag)) Append(words, flag.words);
  }
  return words;
}

}  // namespace

bool CompilesHandlers(const BuildRequest& request) { return !FlagsForHandlers(request).empty(); }

Step HandlerStep(const PlanInputs& inputs) {
  Step step = NewStep(inputs, Tool::kHostCompiler, "handler", kMemory);
  std::vector<std::string>& argv = step.action.argv;
  // A store's first load with such flags waits for this. -O1 takes a third longer, and makes no call noticeably faster.
  argv = {inputs.places.host_compiler, "-c", "-Og", "-std=c++17"};
  Append(argv, PrefixMaps(inputs, step.action, [](std::string_view) { return true; }));
  Append(argv, {StrCat("-I", kKernelHeaders)});
  Append(argv, FlagsForHandlers(inputs.request));
  Append(argv, PrivateSymbolFlags(*inputs.request.toolchain));
  Append(argv, {"-fvisibility=hidden", "-fPIC", "-MD", "-MF", kHandlerDependencies, "-o", kHandlerObject, kUnit});
  step.action.trees = inputs.kernel_headers;
  step.action.inputs = {exec::MakeInput(kUnit, kUnitText)};
  step.action.outputs = {kHandlerObject, kHandlerDependencies};
  step.reuse = Reuse{.dependencies = {kHandlerDependencies}};
  return step;
}

// Steps that keep the compiler's intermediate results for people to read: PTX, disassembled machine code and resource
// usage of each unit and architecture.

namespace {

constexpr uint64_t kPtxMemory = 1ull << 30;
constexpr uint64_t kToolMemory = 256ull << 20;

// The name of a file that is made of one unit for one architecture.
std::string FileOf(const PlannedUnit& unit, std::string_view architecture, std::string_view suffix) {
  return StrCat(unit.folder, "/", architecture, ".", suffix);
}

std::string StepNameOf(std::string_view what, const PlannedUnit& unit, std::string_view architecture) {
  return StrCat(StepName(what, unit), " ", architecture);
}

// One unit for one architecture.
struct KeptPart {
  const PlannedUnit& unit;
  size_t unit_number;
  std::string architecture;

  std::string File(std::string_view suffix) const { return FileOf(unit, architecture, suffix); }
  KeptFile Kept(v1::KeptText::Kind kind, std::string_view suffix) const {
    return {kind, unit_number, architecture, File(suffix)};
  }
  std::string StepNamed(std::string_view what) const { return StepNameOf(what, unit, architecture); }
};

Step CubinStep(const PlanInputs& inputs, const KeptPart& part) {
  const std::string keep_folder = part.File("keep-cubin");
  Step step = NewStep(inputs, Tool::kNvcc, part.StepNamed("machine code"), kToolMemory);
  SetNvccCommand(inputs, part.unit, "-cubin", keep_folder, step.action);
  Append(step.action.argv,
         {StrCat("-arch=", part.architecture), "-Xptxas", "-v", "-o", part.File("cubin"), part.File("ptx")});
  step.action.inputs = {FolderMarker(keep_folder)};
  step.inputs_from_steps = {part.File("ptx")};
  step.action.outputs = {part.File("cubin")};
  step.printed = {part.File("resources"), "Compile time"};
  return step;
}

Step SassStep(const PlanInputs& inputs, const KeptPart& part) {
  Step step = NewStep(inputs, Tool::kOther, part.StepNamed("disassemble"), kToolMemory);
  step.action.argv = {inputs.places.Reach(inputs.request.disassembler), "--print-code", part.File("cubin")};
  step.inputs_from_steps = {part.File("cubin")};
  step.printed.path = part.File("sass");
  return step;
}

std::vector<KeptPart> KeptParts(const PlanInputs& inputs) {
  std::vector<KeptPart> parts;
  for (size_t i = 0; i < inputs.units.size(); ++i) {
    if (inputs.units[i].language != v1::LANGUAGE_CUDA) continue;
    for (const std::string& architecture : inputs.request.architectures) {
      parts.push_back({inputs.units[i], i, architecture});
    }
  }
  return parts;
}

}  // namespace

// The machine code of the architecture is made from it.
Step PtxStep(const PlanInputs& inputs, const PlannedUnit& unit, const std::string& architecture) {
  const std::string keep_folder = FileOf(unit, architecture, "keep-ptx");
  const std::string ptx = FileOf(unit, architecture, "ptx");
  const std::string dependencies = FileOf(unit, architecture, "d");
  Step step = NewStep(inputs, Tool::kNvcc, StepNameOf("ptx", unit, architecture), kPtxMemory);
  SetNvccCommand(inputs, unit, "-ptx", keep_folder, step.action);
  // The files that this pass reads count, too: a source can include a file for one architecture only.
  Append(step.action.argv, {"-MD", "-MF", dependencies});
  Append(step.action.argv,
         {StrCat("-arch=compute", architecture.substr(architecture.find('_'))), "-o", ptx, unit.path});
  step.reads_sources = true;
  step.action.trees = unit.trees;
  step.action.inputs = unit.files;
  step.action.inputs.push_back(FolderMarker(keep_folder));
  step.action.outputs = {ptx, dependencies};
  return step;
}

std::vector<std::string> KeptDependencies(const PlanInputs& inputs) {
  std::vector<std::string> files;
  for (const KeptPart& part : KeptParts(inputs)) files.push_back(part.File("d"));
  return files;
}

std::vector<KeptFile> KeptFiles(const PlanInputs& inputs) {
  std::vector<KeptFile> files;
  for (const KeptPart& part : KeptParts(inputs)) {
    files.push_back(part.Kept(v1::KeptText::PTX, "ptx"));
    files.push_back(part.Kept(v1::KeptText::RESOURCES, "resources"));
    if (!inputs.request.disassembler.empty()) files.push_back(part.Kept(v1::KeptText::SASS, "sass"));
  }
  return files;
}

std::vector<Step> KeptSteps(const PlanInputs& inputs) {
  std::vector<Step> steps;
  for (const KeptPart& part : KeptParts(inputs)) {
    steps.push_back(PtxStep(inputs, part.unit, part.architecture));
    steps.push_back(CubinStep(inputs, part));
    if (!inputs.request.disassembler.empty()) steps.push_back(SassStep(inputs, part));
  }
  return steps;
}

}  // namespace kernix::build
