// SPDX-License-Identifier: Apache-2.0
//
// The host compiler, for C++: one step compiles a unit, one links. Two steps are as fast as one command that does both,
// and an error shows which of them failed.
#include <utility>

#include "common/base/strings.h"
#include "daemon/plan/plan_parts.h"

namespace kernix::build {
namespace {

constexpr uint64_t kCompileMemory = 512ull << 20;

void SetCommand(const PlanInputs& inputs, const PlannedUnit& unit, exec::Action& action) {
  const BuildRequest& request = inputs.request;
  std::vector<std::string>& argv = action.argv;
  argv = {inputs.places.host_compiler, "-c", StrCat("-O", request.optimization_level)};
  Append(argv, DefaultStandard(request));
  Append(argv, PrefixMaps(inputs, action, [](std::string_view) { return true; }));
  Append(argv, QuoteIncludeFlags(request, unit));
  Append(argv, IncludeFlags(request, unit));
  Append(argv, request.host_flags);
  Append(argv, PrivateSymbolFlags(*request.toolchain));
  Append(argv, AssemblerFlags(request, unit));
  // Last, so that no user flag overrides it.
  Append(argv, {"-fPIC", "-MD", "-MF", unit.dependencies, "-o", unit.object, unit.path});
}

class HostCompilerImpl : public Compiler {
 public:
  Step Compile(const PlanInputs& inputs, const PlannedUnit& unit) const override {
    Step step = NewStep(inputs, Tool::kHostCompiler, StepName("compile", unit), kCompileMemory);
    step.kind = StepKind::kCppCompile;
    SetCommand(inputs, unit, step.action);
    if (CallsAssemblerForClang(inputs.request)) {
      // Clang does not pipe to an assembler: the file between the two needs a path in the input root.
      step.action.environment.insert_or_assign("TMPDIR", std::string("."));
    }
    step.reads_sources = true;
    step.object = unit.object;
    step.action.trees = unit.trees;
    step.action.inputs = unit.files;
    step.action.outputs = {unit.object, unit.dependencies};
    if (AssemblerTells(inputs.request)) step.action.outputs.push_back(unit.assembler_dependencies);
    return step;
  }

  Step CheckSyntax(const PlanInputs& inputs, const PlannedUnit& unit) const override {
    Step step = Compile(inputs, unit);
    step.action.argv[1] = "-fsyntax-only";  // instead of -c
    step.action.outputs.clear();
    step.object.clear();
    return step;
  }
};

}  // namespace

const Compiler& HostCompiler() {
  static const auto& compiler = *new HostCompilerImpl;
  return compiler;
}

}  // namespace kernix::build
