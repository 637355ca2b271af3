// SPDX-License-Identifier: Apache-2.0
//
// What the plans of both languages share. Internal to the plans.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/plan/plan.h"
#include "daemon/plan/tool_places.h"

namespace kernix::build {

// A folder of their own, where `#include "x"` in the unit finds nothing of the user's by accident.
inline constexpr char kUnitFolder[] = "kernix-unit";
inline constexpr char kMacroFolder[] = "kernix-macros";
inline constexpr char kArtifact[] = "kernix-unit/kernel.so";
inline constexpr char kKeptObject[] = "kernix-unit/kept.o";

using MountedTrees = std::shared_ptr<const std::vector<exec::MountedTree>>;

// A unit, and where its files lie.
struct PlannedUnit {
  v1::Language language = v1::LANGUAGE_CPP;
  std::string label;                   // of several units: which one; else empty
  std::string folder;                  // "kernix-unit", or one in it
  std::string path;                    // the translation unit
  std::string object;                  // what it is compiled to
  std::string dependencies;            // which files the compiler has read
  std::string assembler_dependencies;  // and the assembler
  std::vector<SearchedRoot> roots;
  // The input root of its compile step: the include roots, and all else.
  MountedTrees trees;
  std::vector<exec::InputFile> files;
};

// What a plan is made from.
struct PlanInputs {
  const BuildRequest& request;
  PlanLimits limits;
  ToolPlaces places = {};
  std::map<std::string, std::string> environment = {};  // of every step
  std::vector<PlannedUnit> units = {};
  std::vector<exec::InputFile> link_files = {};  // what the link flags name
};

std::vector<Step> CppSteps(const PlanInputs& inputs);
std::vector<Step> CudaSteps(const PlanInputs& inputs);

// What makes kKeptObject. For requests with `keep`.
std::vector<Step> KeptSteps(const PlanInputs& inputs);
// The dependency files that they write.
std::vector<std::string> KeptDependencies(const PlanInputs& inputs);

// Begins the command of `action` with what every call of nvcc for a unit has, whatever it is to make of it (`what`:
// "-c", "-ptx", "-cubin"). Intermediate files go to `keep_folder`, which must be there.
void SetNvccCommand(const PlanInputs& inputs, const PlannedUnit& unit, const std::string& what,
                    std::string_view keep_folder, exec::Action& action);

// What every step has. One that calls nvcc keeps its temporary files in ".", and may use a shell.
Step NewStep(const PlanInputs& inputs, Tool tool, std::string name, uint64_t memory_estimate_bytes);

// Makes a folder be there when a command starts.
exec::InputFile FolderMarker(std::string_view folder);

// "compile", or "compile a.cu" of several units.
std::string StepName(std::string_view what, const PlannedUnit& unit);

// For the host compiler: where names in quotes are looked up first, "-iquotekernix", "-iquoteinc/0", ...
std::vector<std::string> QuoteIncludeFlags(const BuildRequest& request, const PlannedUnit& unit);

// "-Ikernix", "-Iinc/1", ...
std::vector<std::string> IncludeFlags(const BuildRequest& request, const PlannedUnit& unit);

// Flags that keep the places of the toolchain's folders out of debug information and __FILE__. Two users whose
// toolchains lie in different places get the same bytes. (The action's root does not show: commands name their files by
// relative paths, and the toolchain's environment holds a constant PWD.) A folder that is not behind a link is a
// placeholder, which `action` expands. `is_usable` says of a flag, expanded, whether the tool takes it.
std::vector<std::string> PrefixMaps(const PlanInputs& inputs, exec::Action& action,
                                    const std::function<bool(std::string_view flag)>& is_usable);

// Keeps inline variables and statics of two artifacts apart in one process. As g++ marks them by default, the dynamic
// linker takes the first one's for both, whatever RTLD_LOCAL says: replaced code would go on with the old one's tables.
std::vector<std::string> PrivateSymbolFlags(const toolchain::Toolchain& toolchain);

// Whether the assembler tells what it reads. Clang has one of its own, which does not, and is told to use the system's
// where that matters.
bool AssemblerTells(const BuildRequest& request);

// Flags for the host compiler: have the assembler tell, into the unit's file for that. It must see the machine code
// also with -flto, which otherwise goes to the link.
std::vector<std::string> AssemblerFlags(const BuildRequest& request, const PlannedUnit& unit);

// "-std=c++17", or nothing when the request's flags choose a standard.
std::vector<std::string> DefaultStandard(const BuildRequest& request);

// Links the units' objects with the host compiler, which is given what it compiled them with as well, since some of
// these flags mean something to the link too (-fopenmp, -fsanitize=...). `libraries` go last.
Step LinkStep(const PlanInputs& inputs, const std::vector<std::string>& libraries);

template <typename T>
void Append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}
inline void Append(std::vector<std::string>& to, std::initializer_list<std::string> from) { to.insert(to.end(), from); }

}  // namespace kernix::build
