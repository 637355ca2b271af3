// SPDX-License-Identifier: Apache-2.0
//
// The host compiler: for C++, one step compiles a unit, one links. Two steps are as fast as one command that does both,
// and an error shows which of them failed. For all languages, it compiles the handlers' part, and links.
#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/strings.h"
#include "common/flags/flag_table.h"
#include "daemon/plan/plan_parts.h"

namespace kernix::build {
namespace {

using flags::Meaning;

constexpr uint64_t kCompileMemory = 512ull << 20;
constexpr uint64_t kLinkMemory = 256ull << 20;

void SetCommand(const PlanInputs& inputs, const PlannedUnit& unit, exec::Action& action) {
  const BuildRequest& request = inputs.request;
  std::vector<std::string>& argv = action.argv;
  argv = {inputs.tools.host_compiler, "-c", StrCat("-O", request.optimization_level)};
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
    Step step = NewStep(inputs, StepName("compile", unit), kCompileMemory);
    step.kind = StepKind::kCppCompile;
    SetCommand(inputs, unit, step.action);
    if (CallsAssemblerForClang(inputs.request)) {
      // Clang does not pipe to an assembler: the file between the two needs a path in the input root.
      step.action.environment.insert_or_assign("TMPDIR", std::string("."));
    }
    step.object = unit.object;
    step.action.trees = unit.trees;
    step.action.inputs = unit.files;
    step.action.outputs = {unit.object, unit.dependencies};
    if (AssemblerTells(inputs.request)) step.action.outputs.push_back(unit.assembler_dependencies);
    return step;
  }

  Step CheckSyntax(const PlanInputs& inputs, const PlannedUnit& unit) const override {
    Step step = Compile(inputs, unit);
    step.kind = StepKind::kOther;
    step.action.argv[1] = "-fsyntax-only";  // instead of -c
    step.action.outputs.clear();
    step.object.clear();
    return step;
  }
};

constexpr char kHandlerUnit[] = "kernix-unit/handler.cc";
constexpr char kHandlerUnitText[] = "#include \"brainevent/internal/handler_runtime.h\"\n";
constexpr uint64_t kHandlerMemory = 256ull << 20;

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

// Whether a compile flag may be passed to the link.
bool ConcernsLink(const flags::Flag& flag) { return flag.meaning() != Meaning::kProcessRounding; }

std::vector<std::string> HostFlags(const BuildRequest& request, bool (*counts)(const flags::Flag& flag)) {
  std::vector<std::string> words;
  for (const flags::Flag& flag : flags::ReadAll(flags::kCompiler, request.host_flags)) {
    if (counts(flag)) Append(words, flag.words);
  }
  return words;
}

// Whether the flags may name libraries or folders of the user's, which can change without notice.
bool MayNameFiles(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word.find('/') != std::string::npos; });
}

const exec::InputFile& HandlersInput() {
  static const auto& input = *new exec::InputFile(exec::MakeInput(kHandlerObject, HandlersPart()));
  return input;
}

// The libraries of a link by g++ or clang++, for a driver of C. Clang has both in one program. GCC's libraries are
// those of g++, which alone knows -static-libstdc++.
std::vector<std::string> CxxLibraries(const BuildRequest& request, const std::vector<std::string>& flags) {
  const toolchain::HostCompiler& host = request.toolchain->host;
  if (host.links_cxx) return {};
  if (host.kind == toolchain::HostCompilerKind::kClang) return {"--driver-mode=g++"};
  const bool is_static = std::find(flags.begin(), flags.end(), "-static-libstdc++") != flags.end();
  if (is_static) return {"-Wl,-Bstatic", "-lstdc++", "-Wl,-Bdynamic", "-lm"};
  return {"-lstdc++", "-lm"};
}

}  // namespace

const Compiler& HostCompiler() {
  static const auto& compiler = *new HostCompilerImpl;
  return compiler;
}

bool CompilesHandlers(const BuildRequest& request) { return !HostFlags(request, ConcernsHandlers).empty(); }

Step HandlerStep(const PlanInputs& inputs) {
  Step step = NewStep(inputs, "handler", kHandlerMemory);
  std::vector<std::string>& argv = step.action.argv;
  // A store's first load with such flags waits for this. -O1 takes a third longer, and makes no call noticeably faster.
  argv = {inputs.tools.host_compiler, "-c", "-Og", "-std=c++17"};
  Append(argv, PrefixMaps(inputs, step.action, [](std::string_view) { return true; }));
  Append(argv, {StrCat("-I", kKernelHeaders)});
  Append(argv, HostFlags(inputs.request, ConcernsHandlers));
  Append(argv, PrivateSymbolFlags(*inputs.request.toolchain));
  Append(argv,
         {"-fvisibility=hidden", "-fPIC", "-MD", "-MF", kHandlerDependencies, "-o", kHandlerObject, kHandlerUnit});
  step.action.trees = inputs.kernel_headers;
  step.action.inputs = {exec::MakeInput(kHandlerUnit, kHandlerUnitText)};
  step.action.outputs = {kHandlerObject, kHandlerDependencies};
  step.reuse = Reuse{.dependencies = {kHandlerDependencies}};
  return step;
}

Step LinkStep(const PlanInputs& inputs, const ModuleParts& more) {
  const BuildRequest& request = inputs.request;
  Step step = NewStep(inputs, "link", kLinkMemory);
  step.action.work = exec::Work::kLink;
  // -Wl,--no-undefined: the link reports a missing symbol by name; otherwise only opening the artifact would. Users can
  // undo this with `-Wl,-z,undefs`. -Wl,-Bsymbolic: the artifact uses the definitions of its own sources and static
  // libraries, even if a library opened for the whole process (RTLD_GLOBAL) defines the same names. The build id is a
  // digest of the content.
  step.action.argv = {inputs.tools.host_compiler, "-shared",        "-fPIC",
                      "-Wl,--no-undefined",       "-Wl,-Bsymbolic", "-Wl,--build-id=sha1"};
  const std::vector<std::string> host_flags = HostFlags(request, ConcernsLink);
  Append(step.action.argv, host_flags);
  // Directly behind the user's flags, since one that lacks its value takes the next word: the link fails without -o.
  Append(step.action.argv, {"-o", kArtifact});
  // If an object claims to take part in link-time optimization, which a source can cause with assembler text, the link
  // would compile it, and no step would report the files read.
  const bool lto = toolchain::LinksWithLto(request.host_flags, request.link_flags);
  if (!lto) step.action.argv.emplace_back("-fno-lto");
  for (const PlannedUnit& unit : inputs.units) step.inputs_from_steps.push_back(unit.object);
  Append(step.inputs_from_steps, more.objects);
  Append(step.action.argv, step.inputs_from_steps);
  step.action.argv.emplace_back(kHandlerObject);
  Append(step.action.argv, request.link_flags);
  Append(step.action.argv, more.libraries);
  Append(step.action.argv, CxxLibraries(request, step.action.argv));
  step.action.inputs = inputs.link_files;
  if (CompilesHandlers(request)) {
    step.inputs_from_steps.emplace_back(kHandlerObject);
  } else {
    step.action.inputs.push_back(HandlersInput());
  }
  step.action.outputs = {kArtifact};
  const bool is_plain = request.link_flags.empty() && !MayNameFiles(host_flags) && !lto;
  step.kind = is_plain ? StepKind::kPlainLink : StepKind::kLink;
  return step;
}

}  // namespace kernix::build
