// SPDX-License-Identifier: Apache-2.0
//
// nvcc, for CUDA: it compiles each unit for all architectures (a C++ unit with the host compiler), and the host
// compiler links the objects with the static CUDA runtime. A build may run nvcc's phases instead of nvcc (see
// nvcc_phases.h); the key is that of the whole call either way.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/shell_words.h"
#include "common/base/strings.h"
#include "daemon/plan/plan_parts.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

constexpr char kDeviceLinkKeepFolder[] = "kernix-unit/keep-dlink";
constexpr char kDeviceObject[] = "kernix-unit/device.o";
constexpr uint64_t kCompileMemory = 1ull << 30;
constexpr uint64_t kDeviceLinkMemory = 512ull << 20;

// Machine code for each architecture, and PTX of the newest one, which newer GPUs can run.
std::vector<std::string> ArchitectureFlags(const std::vector<std::string>& architectures) {
  std::vector<std::string> flags;
  const auto add = [&](const std::string& architecture, std::string_view kind) {
    const std::string number = architecture.substr(architecture.find('_') + 1);
    Append(flags, {"-gencode", StrCat("arch=compute_", number, ",code=", kind, "_", number)});
  };
  for (const std::string& architecture : architectures) add(architecture, "sm");
  add(architectures.back(), "compute");
  return flags;
}

std::vector<std::string> ForHostCompiler(const std::vector<std::string>& flags) {
  std::vector<std::string> result;
  for (const std::string& flag : flags) Append(result, {"-Xcompiler", flag});
  return result;
}

// Leaves out flags that nvcc would split, or that its shell would interpret. The only effect is that such a folder
// shows in debug information.
bool CanPassThroughNvcc(std::string_view flag) { return IsHarmlessWord(flag) && !absl::StrContains(ToAbsl(flag), ','); }

bool HasDeviceCode(const PlannedUnit& unit) { return unit.language->runs_on_gpu; }

// ptxas compiles that many functions of a unit side by side. The machine code is the same for any number, but a note of
// the object names it. So the number is fixed, and the artifact does not depend on the machine or its load. A unit
// whose ptxas takes 18 s takes 7 s with four threads, for 8 % more processor time; a small unit takes 1 ms longer.
// With threads of cicc (nvcc's own --split-compile), some units get other machine code.
std::vector<std::string> PtxasThreads(const toolchain::Toolchain& toolchain) {
  constexpr int kFirstTried = 13;  // major version of the toolkit
  if (toolchain.cuda->major_version < kFirstTried) return {};
  return {"-Xptxas", "--split-compile=4"};
}

// Flags that nvcc needs in every call to write the same bytes in every folder: they give intermediate files fixed names
// (by default, the names contain the process number) in a folder of their own.
std::vector<std::string> KeepFlags(std::string_view folder) { return {"--keep", "--keep-dir", std::string(folder)}; }

std::vector<std::string> SystemIncludeFlags(const ToolPaths& tools) {
  std::vector<std::string> flags;
  for (const std::string& directory : tools.include_directories) Append(flags, {"-isystem", directory});
  return flags;
}

// A file whose only purpose is that `folder` exists when the command starts.
exec::InputFile FolderMarker(std::string_view folder) { return exec::MakeInput(StrCat(folder, "/.keep"), ""); }

Step NvccStep(const PlanInputs& inputs, std::string name, uint64_t memory_estimate_bytes) {
  Step step = NewStep(inputs, std::move(name), memory_estimate_bytes);
  step.action.environment["TMPDIR"] = std::string(".");  // nvcc redirects output into it, without quotes
  step.action.tool_uses_shell = true;
  return step;
}

// Begins the command of `action` with the words that every call for a unit has. `what` is the kind of output: "-c",
// "-ptx", "-cubin". Intermediate files go to `keep_folder`, which must exist.
void SetCommand(const PlanInputs& inputs, const PlannedUnit& unit, const std::string& what,
                std::string_view keep_folder, exec::Action& action) {
  const BuildRequest& request = inputs.request;
  std::vector<std::string>& argv = action.argv;
  argv = {inputs.tools.nvcc,
          what,
          "-ccbin",
          inputs.tools.host_compiler,
          StrCat("-O", request.optimization_level),
          "-Wno-deprecated-gpu-targets"};
  Append(argv, KeepFlags(keep_folder));
  // By default, nvcc makes the module id, which is part of the name of every device symbol with internal linkage, from
  // the unit's absolute path.
  Append(argv, {"-Xcudafe", StrCat("--orig_src_path_name=", unit.path)});
  Append(argv, DefaultStandard(request));
  // -O applies to the host code only; ptxas has its own level for device code, by default 3.
  if (request.optimization_level != 3) Append(argv, {"-Xptxas", StrCat("-O", request.optimization_level)});
  Append(argv, PtxasThreads(*request.toolchain));
  if (request.use_fast_math) argv.push_back("--use_fast_math");
  Append(argv, ForHostCompiler(PrefixMaps(inputs, action, CanPassThroughNvcc)));
  Append(argv, ForHostCompiler(QuoteIncludeFlags(request, unit)));
  Append(argv, IncludeFlags(request, unit));
  Append(argv, SystemIncludeFlags(inputs.tools));
  Append(argv, request.nvcc_flags);
  Append(argv, ForHostCompiler(request.host_flags));
  Append(argv, ForHostCompiler(PrivateSymbolFlags(*request.toolchain)));
  Append(argv, {"-Xcompiler", "-fPIC"});
}

Step CompileStep(const PlanInputs& inputs, const PlannedUnit& unit) {
  const std::string keep_folder = unit.folder + "/keep";
  Step step = NvccStep(inputs, StepName("compile", unit), kCompileMemory);
  exec::Action& action = step.action;
  SetCommand(inputs, unit, "-c", keep_folder, action);
  Append(action.argv, ArchitectureFlags(inputs.request.architectures));
  Append(action.argv, ForHostCompiler(AssemblerFlags(inputs.request, unit)));
  Append(action.argv, {"-MD", "-MF", unit.dependencies, "-o", unit.object, unit.path});
  step.object = unit.object;
  if (HasDeviceCode(unit)) {
    step.kind = StepKind::kCudaCompile;
    step.nvcc = NvccCompile{.dependencies = unit.dependencies};
  }
  action.trees = unit.trees;
  action.inputs = unit.files;
  action.inputs.push_back(FolderMarker(keep_folder));
  action.outputs = {unit.object, unit.dependencies};
  if (AssemblerTells(inputs.request)) action.outputs.push_back(unit.assembler_dependencies);
  return step;
}

// Link flags may name objects and static libraries: their device code is linked, too.
bool MayHoldDeviceCode(const std::string& path) { return path.ends_with(".o") || path.ends_with(".a"); }

Step DeviceLinkStep(const PlanInputs& inputs) {
  Step step = NvccStep(inputs, "device link", kDeviceLinkMemory);
  step.action.work = exec::Work::kLink;
  step.action.argv = {inputs.tools.nvcc, "-dlink", "-ccbin", inputs.tools.host_compiler, "-Wno-deprecated-gpu-targets",
                      "-Xcompiler",      "-fPIC"};
  Append(step.action.argv, KeepFlags(kDeviceLinkKeepFolder));
  Append(step.action.argv, ArchitectureFlags(inputs.request.architectures));
  Append(step.action.argv, {"-o", kDeviceObject});
  for (const PlannedUnit& unit : inputs.units) {
    if (!HasDeviceCode(unit)) continue;
    step.action.argv.push_back(unit.object);
    step.inputs_from_steps.push_back(unit.object);
  }
  step.action.inputs = {FolderMarker(kDeviceLinkKeepFolder)};
  for (const exec::InputFile& file : inputs.link_files) {
    if (!MayHoldDeviceCode(file.path)) continue;
    step.action.argv.push_back(file.path);
    step.action.inputs.push_back(file);
  }
  step.action.outputs = {kDeviceObject};
  return step;
}

std::vector<std::string> RuntimeLibraries(const PlanInputs& inputs) {
  std::vector<std::string> flags;
  for (const std::string& directory : inputs.tools.library_directories) {
    flags.push_back(StrCat("-L", directory));
  }
  if (inputs.request.relocatable_device_code) flags.push_back("-lcudadevrt");
  Append(flags, {"-lcudart_static", "-ldl", "-lrt", "-lpthread"});
  return flags;
}

// Steps that keep the compiler's intermediate results for people to read: PTX, disassembled machine code and resource
// usage of each unit and architecture.

constexpr uint64_t kPtxMemory = 1ull << 30;
constexpr uint64_t kToolMemory = 256ull << 20;

// One unit for one architecture.
struct Part {
  const PlannedUnit& unit;
  std::string architecture;
  size_t unit_number = 0;

  std::string File(std::string_view suffix) const { return StrCat(unit.folder, "/", architecture, ".", suffix); }
  std::string StepNamed(std::string_view what) const { return StrCat(StepName(what, unit), " ", architecture); }
  KeptFile Kept(v1::KeptText::Kind kind, std::string_view suffix) const {
    return {kind, unit_number, architecture, File(suffix)};
  }
};

Step CubinStep(const PlanInputs& inputs, const Part& part) {
  const std::string keep_folder = part.File("keep-cubin");
  Step step = NvccStep(inputs, part.StepNamed("machine code"), kToolMemory);
  SetCommand(inputs, part.unit, "-cubin", keep_folder, step.action);
  Append(step.action.argv,
         {StrCat("-arch=", part.architecture), "-Xptxas", "-v", "-o", part.File("cubin"), part.File("ptx")});
  step.action.inputs = {FolderMarker(keep_folder)};
  step.inputs_from_steps = {part.File("ptx")};
  step.action.outputs = {part.File("cubin")};
  step.printed = {part.File("resources"), "Compile time"};
  return step;
}

Step SassStep(const PlanInputs& inputs, const Part& part) {
  Step step = NewStep(inputs, part.StepNamed("disassemble"), kToolMemory);
  step.action.work = exec::Work::kOther;
  step.action.argv = {inputs.tools.Reach(inputs.request.disassembler), "--print-code", "--print-line-info",
                      part.File("cubin")};
  step.inputs_from_steps = {part.File("cubin")};
  step.printed.path = part.File("sass");
  return step;
}

// The machine code of the architecture is made from it.
Step PtxStep(const PlanInputs& inputs, const Part& part) {
  const std::string keep_folder = part.File("keep-ptx");
  const std::string& architecture = part.architecture;
  Step step = NvccStep(inputs, part.StepNamed("ptx"), kPtxMemory);
  SetCommand(inputs, part.unit, "-ptx", keep_folder, step.action);
  // The files that this pass reads count, too: a source can include a file for one architecture only.
  Append(step.action.argv, {"-MD", "-MF", part.File("d")});
  Append(step.action.argv, {StrCat("-arch=compute", architecture.substr(architecture.find('_'))), "-o",
                            part.File("ptx"), part.unit.path});
  step.action.trees = part.unit.trees;
  step.action.inputs = part.unit.files;
  step.action.inputs.push_back(FolderMarker(keep_folder));
  step.action.outputs = {part.File("ptx"), part.File("d")};
  return step;
}

// Adds the steps, the texts that they make, and the dependency files that they write.
void AddKept(const PlanInputs& inputs, const Part& part, ModuleParts& more) {
  more.steps.push_back(PtxStep(inputs, part));
  more.steps.push_back(CubinStep(inputs, part));
  more.dependencies.push_back(part.File("d"));
  more.kept.push_back(part.Kept(v1::KeptText::PTX, "ptx"));
  more.kept.push_back(part.Kept(v1::KeptText::RESOURCES, "resources"));
  if (inputs.request.disassembler.empty()) return;
  more.steps.push_back(SassStep(inputs, part));
  more.kept.push_back(part.Kept(v1::KeptText::SASS, "sass"));
}

void AddKept(const PlanInputs& inputs, ModuleParts& more) {
  for (size_t i = 0; i < inputs.units.size(); ++i) {
    if (!HasDeviceCode(inputs.units[i])) continue;
    for (const std::string& architecture : inputs.request.architectures) {
      AddKept(inputs, {inputs.units[i], architecture, i}, more);
    }
  }
}

class NvccImpl : public Compiler {
 public:
  Step Compile(const PlanInputs& inputs, const PlannedUnit& unit) const override { return CompileStep(inputs, unit); }

  ModuleParts More(const PlanInputs& inputs) const override {
    ModuleParts more;
    const bool has_device_code = std::any_of(inputs.units.begin(), inputs.units.end(), HasDeviceCode);
    if (inputs.request.relocatable_device_code && has_device_code) {
      more.steps.push_back(DeviceLinkStep(inputs));
      more.objects.emplace_back(kDeviceObject);
    }
    if (inputs.request.keep) AddKept(inputs, more);
    more.libraries = RuntimeLibraries(inputs);
    return more;
  }
};

}  // namespace

const Compiler& Nvcc() {
  static const auto& compiler = *new NvccImpl;
  return compiler;
}

}  // namespace kernix::build
