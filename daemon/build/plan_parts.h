// SPDX-License-Identifier: Apache-2.0
//
// What the plans of both languages share. Internal to the plans.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/build/plan.h"

namespace kernix::build {

// A folder of their own, where `#include "x"` in the unit finds nothing of the user's by accident.
inline constexpr char kUnitFolder[] = "kernix-unit";
inline constexpr char kCppUnit[] = "kernix-unit/unit.cc";
inline constexpr char kCudaUnit[] = "kernix-unit/unit.cu";
inline constexpr char kObject[] = "kernix-unit/unit.o";
inline constexpr char kArtifact[] = "kernix-unit/kernel.so";
inline constexpr char kDependencies[] = "kernix-unit/unit.d";
inline constexpr char kAssemblerDependencies[] = "kernix-unit/assembler.d";

// What a plan is made from.
struct PlanInputs {
  const BuildRequest& request;
  std::string unit;                         // the translation unit's path
  std::vector<exec::InputFile> files;       // the input root of a compile step
  std::vector<exec::InputFile> link_files;  // what the link flags name
  PlanLimits limits;
};

std::vector<Step> CppSteps(const PlanInputs& inputs);
std::vector<Step> CudaSteps(const PlanInputs& inputs);

// For the host compiler: where names in quotes are looked up first, "-iquotekernix", "-iquoteinc/0", ...
std::vector<std::string> QuoteIncludeFlags(const BuildRequest& request);

// "-Ikernix", "-Iinc/1", ...
std::vector<std::string> IncludeFlags(const BuildRequest& request);

// Flags that keep the places of the toolchain's folders out of debug information and __FILE__. Two users whose
// toolchains lie in different places get the same bytes. (The action's root does not show: commands name their files by
// relative paths, and the toolchain's environment holds a constant PWD.)
std::vector<std::string> PrefixMaps(const toolchain::Toolchain& toolchain);

// Keeps inline variables and statics of two artifacts apart in one process. As g++ marks them by default, the dynamic
// linker takes the first one's for both, whatever RTLD_LOCAL says: replaced code would go on with the old one's tables.
std::vector<std::string> PrivateSymbolFlags(const toolchain::Toolchain& toolchain);

// Whether the assembler tells what it reads. Clang has one of its own, which does not.
bool AssemblerTells(const toolchain::Toolchain& toolchain);

// Flags for the host compiler: have the assembler tell, into kAssemblerDependencies. It must see the machine code also
// with -flto, which otherwise goes to the link.
std::vector<std::string> AssemblerFlags(const BuildRequest& request);

// "-std=c++17", or nothing when `flags` choose a standard.
std::vector<std::string> DefaultStandard(const std::vector<std::string>& flags);

// Links kObject with the host compiler. `compile_flags`: what the host compiler compiled it with, since some of these
// mean something to the link too (-fopenmp, -fsanitize=...). `libraries` go last.
Step LinkStep(const PlanInputs& inputs, const std::vector<std::string>& compile_flags,
              const std::vector<std::string>& libraries);

template <typename T>
void Append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}
inline void Append(std::vector<std::string>& to, std::initializer_list<std::string> from) { to.insert(to.end(), from); }

}  // namespace kernix::build
