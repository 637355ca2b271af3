// SPDX-License-Identifier: Apache-2.0
//
// C++: compile, link. As fast as one command that does both, and a failure says which of the two it was.
#include <utility>

#include "daemon/base/strings.h"
#include "daemon/build/plan_parts.h"

namespace kernix::build {
namespace {

constexpr uint64_t kCompileMemory = 512ull << 20;

std::vector<std::string> CompileCommand(const PlanInputs& inputs) {
  const BuildRequest& request = inputs.request;
  std::vector<std::string> argv = {request.toolchain->host.path, "-c", StrCat("-O", request.optimization_level)};
  Append(argv, DefaultStandard(request.compile_flags));
  Append(argv, PrefixMaps(*request.toolchain));
  Append(argv, QuoteIncludeFlags(request));
  Append(argv, IncludeFlags(request));
  Append(argv, request.compile_flags);
  Append(argv, PrivateSymbolFlags(*request.toolchain));
  Append(argv, AssemblerFlags(request));
  // Last, so that no flag of the user undoes it.
  Append(argv, {"-fPIC", "-MD", "-MF", kDependencies, "-o", kObject, inputs.unit});
  return argv;
}

}  // namespace

std::vector<Step> CppSteps(const PlanInputs& inputs) {
  Step compile;
  compile.action.step = "compile";
  compile.action.argv = CompileCommand(inputs);
  compile.action.environment = inputs.request.toolchain->environment;
  compile.action.inputs = inputs.files;
  compile.action.outputs = {kObject, kDependencies};
  if (AssemblerTells(*inputs.request.toolchain)) compile.action.outputs.push_back(kAssemblerDependencies);
  compile.action.timeout = inputs.limits.step_timeout;
  compile.action.memory_estimate_bytes = kCompileMemory;
  return {std::move(compile), LinkStep(inputs, inputs.request.compile_flags, {})};
}

}  // namespace kernix::build
