// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/plan_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/strings.h"
#include "common/flags/flag_table.h"

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

}  // namespace kernix::build
