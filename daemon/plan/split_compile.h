// SPDX-License-Identifier: Apache-2.0
//
// Splits a compile for the host after the unit's preamble (split_pass.h), so that the preamble is compiled once. For a
// small kernel, the host compiler reads little else, and units with the same first `#include`s have the same preamble.
// GCC keeps its state in a precompiled header, and goes on from there with the rest of the unit.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/plan/plan.h"

namespace kernix::build {

// The folder of the precompiled header in the action's root.
inline constexpr char kCompiledPreambleFolder[] = "kernix-compiled";

// A compile by the host compiler in two parts.
struct SplitCompile {
  // Makes the precompiled header of its first input. `reuse` says which output lists the files that it was made from.
  Step preamble;
  // Preprocesses the preamble, for MayBeCompiled(); null if its text is preprocessed, and may be compiled.
  std::shared_ptr<const Step> preprocess;
  // Compiles the rest, with a mounted tree of CompiledPreambleFiles().
  exec::Action rest;
};

// `host_compile`: a phase of nvcc with all of its inputs; `host_text`: the input that it compiles, cudafe++'s output.
// `code_line`: the line that follows the preamble (PreamblePass). nullopt if that line is not found in the text, or if
// the text leaves something open there.
std::optional<SplitCompile> SplitHostCompile(const Step& host_compile, const std::string& host_text,
                                             std::string_view code_line);

// `compile`: that of a C++ unit, with all of its inputs; the unit is its last word. nullopt if the unit has no
// preamble.
std::optional<SplitCompile> SplitCppCompile(const Step& compile);

// Whether the output of SplitCompile::preprocess leaves its pragmas closed, and undefines no macro of the compiler. A
// precompiled header loses such state, for example of `#pragma pack(1)`, and restores the compiler's macros.
bool MayBeCompiled(std::string_view preprocessed);

// The files of the precompiled header's folder. `header`: the output of SplitCompile::preamble.
std::vector<exec::InputFile> CompiledPreambleFiles(exec::Content header);

// The output of SplitCompile::preamble that is the precompiled header.
const std::string& CompiledHeaderOf(const Step& preamble);

}  // namespace kernix::build
