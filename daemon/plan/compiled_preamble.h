// SPDX-License-Identifier: Apache-2.0
//
// A unit's preamble (preamble.h), compiled for the host once. It is nearly all that the host compiler reads for a small
// kernel, and the same text for every unit that begins with the same `#include`s. GCC keeps what it has read in a
// precompiled header, from which it goes on with what follows.
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
  // Compiles what follows, once a tree of CompiledPreambleFiles() is mounted.
  exec::Action rest;
};

// `host_compile`: a phase of nvcc with all of its inputs; `host_text`: the one that it compiles, which cudafe++ has
// made. `code_line`: the line that follows the preamble (PreamblePass). nullopt if the text does not say where that is,
// or if it does not leave everything closed.
std::optional<SplitCompile> SplitHostCompile(const Step& host_compile, const std::string& host_text,
                                             std::string_view code_line);

// `compile`: that of a C++ unit, with all of its inputs; the unit is its last word. nullopt if the unit has no
// preamble.
std::optional<SplitCompile> SplitCppCompile(const Step& compile);

// Whether what SplitCompile::preprocess has made leaves its pragmas closed, and undefines no macro of the compiler: a
// precompiled header loses the state of the one, as of `#pragma pack(1)`, and brings back the other.
bool MayBeCompiled(std::string_view preprocessed);

// The files of the precompiled header's folder. `header`: what SplitCompile::preamble has made.
std::vector<exec::InputFile> CompiledPreambleFiles(exec::Content header);

// The output of SplitCompile::preamble that is the precompiled header.
const std::string& CompiledHeaderOf(const Step& preamble);

}  // namespace kernix::build
