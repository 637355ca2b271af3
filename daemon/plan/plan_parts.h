// SPDX-License-Identifier: Apache-2.0
//
// Compilers, and the parts that their plans share.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/flags/languages.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {

inline constexpr char kArtifact[] = "kernix-unit/kernel.so";
inline constexpr char kHandlerObject[] = "kernix-unit/handler.o";
inline constexpr char kHandlerDependencies[] = "kernix-unit/handler.d";

using MountedTrees = std::shared_ptr<const std::vector<exec::MountedTree>>;

// A unit and the paths of its files.
struct PlannedUnit {
  const LanguageTraits* language = nullptr;
  std::string label;                   // with several units: its label; otherwise empty
  std::string folder;                  // "kernix-unit", or a folder in it
  std::string path;                    // the translation unit
  std::string object;                  // the object that it is compiled to
  std::string dependencies;            // lists the files that the compiler has read
  std::string assembler_dependencies;  // lists the files that the assembler has read
  std::vector<SearchedRoot> roots;
  // The input root of its compile step: the include roots, and all other files.
  MountedTrees trees;
  std::vector<exec::InputFile> files;
};

// The data from which a plan is made.
struct PlanInputs {
  const BuildRequest& request;
  PlanLimits limits;
  ToolPaths tools = {};
  std::map<std::string, std::string> environment = {};  // of every step
  std::vector<PlannedUnit> units = {};
  MountedTrees kernel_headers = nullptr;         // alone
  std::vector<exec::InputFile> link_files = {};  // files that the link flags name
};

// The parts of a module besides the compiles of its units.
struct ModuleParts {
  std::vector<Step> steps;
  std::vector<std::string> objects;    // what they make for the link,
  std::vector<std::string> libraries;  // and what it needs at its end
  std::vector<KeptFile> kept;          // what they make for people, and lists of the files that they have read
  std::vector<std::string> dependencies;
};

// Compiles the units of a module, which has one language, and may have units of C++ beside it. Every language has one.
// Its steps run as they are, unless their kind has a faster way (step_runner.h).
class Compiler {
 public:
  virtual ~Compiler() = default;

  // Makes a unit's object, and lists of the files that were read.
  virtual Step Compile(const PlanInputs& inputs, const PlannedUnit& unit) const = 0;

  // For the errors of sources that were refused. What it makes is not used.
  virtual Step CheckSyntax(const PlanInputs& inputs, const PlannedUnit& unit) const { return Compile(inputs, unit); }

  virtual ModuleParts More(const PlanInputs& /*inputs*/) const { return {}; }
};

const Compiler& HostCompiler();
const Compiler& Nvcc();

// That of each language. A test may add one before anything is planned.
std::map<v1::Language, const Compiler*>& Compilers();

// Makes a step with the fields that all steps share. Its work is a host compile.
Step NewStep(const PlanInputs& inputs, std::string name, uint64_t memory_estimate_bytes);

// "compile", or "compile a.cu" if there are several units.
std::string StepName(std::string_view what, const PlannedUnit& unit);

// Flags for the host compiler with the folders searched first for names in quotes: "-iquotekernix", "-iquoteinc/0", ...
std::vector<std::string> QuoteIncludeFlags(const BuildRequest& request, const PlannedUnit& unit);

// "-Ikernix", "-Iinc/1", ...
std::vector<std::string> IncludeFlags(const BuildRequest& request, const PlannedUnit& unit);

// Flags that keep the paths of the toolchain's folders out of debug information and __FILE__: two users with the same
// toolchain at different paths get the same bytes. (The action's root does not show: commands use relative paths for
// their files, and the toolchain's environment has a constant PWD.) A folder that no link leads to is a placeholder,
// which `action` expands. `is_usable` tells whether the tool accepts a flag in its expanded form.
std::vector<std::string> PrefixMaps(const PlanInputs& inputs, exec::Action& action,
                                    const std::function<bool(std::string_view flag)>& is_usable);

// Flags that keep inline variables and statics of two artifacts apart in one process. With g++'s default marking, the
// dynamic linker uses the first artifact's for both, regardless of RTLD_LOCAL: replaced code would continue with the
// old code's tables.
std::vector<std::string> PrivateSymbolFlags(const toolchain::Toolchain& toolchain);

// Whether a compile has an assembler that reports the files it reads. With -flto, Clang calls none.
bool AssemblerTells(const BuildRequest& request);

// Whether the plan makes Clang call the system's assembler: its own one reports nothing.
bool CallsAssemblerForClang(const BuildRequest& request);

// Flags for the host compiler that make the assembler report the files it reads, in the unit's file for that. GCC's
// assembler must see the machine code also with -flto, which otherwise leaves code generation to the link.
std::vector<std::string> AssemblerFlags(const BuildRequest& request, const PlannedUnit& unit);

// "-std=c++17", or nothing if the request's flags choose a standard.
std::vector<std::string> DefaultStandard(const BuildRequest& request);

// Whether flags of the request concern the part of handlers that all artifacts share
// (kernel/brainevent/internal/handler_runtime.h). Then HandlerStep() compiles it; the others take the one that comes
// with kernixd.
bool CompilesHandlers(const BuildRequest& request);
Step HandlerStep(const PlanInputs& inputs);

// Links the units' objects, those of `more`, and the handlers' part with the host compiler. The command repeats compile
// flags of the host compiler, because some of them also affect the link (-fopenmp, -fsanitize=...).
Step LinkStep(const PlanInputs& inputs, const ModuleParts& more);

template <typename T>
void Append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}
inline void Append(std::vector<std::string>& to, std::initializer_list<std::string> from) { to.insert(to.end(), from); }

// The handlers' part as it comes with kernixd: compiled when kernixd was built, by the compiler of kernixd.

// An object for any processor of this kind. It needs names only that every GCC and Clang of the last ten years brings.
std::string_view HandlersPart();

}  // namespace kernix::build
