// SPDX-License-Identifier: Apache-2.0
//
// What cudafe++ makes of a unit's preamble (preamble.h), compiled once. It is nearly all that the host compiler reads
// for a small kernel, and the same text for every unit that begins with the same `#include`s. GCC keeps what it has
// read in a precompiled header, from which it goes on with what follows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/plan/plan.h"

namespace kernix::build {

// The folder of the precompiled header in the action's root.
inline constexpr char kCompiledPreambleFolder[] = "kernix-compiled";

// A host compile in two parts.
struct SplitHostCompile {
  // Makes the precompiled header. `reuse` says which output lists the files that it was made from.
  Step preamble;
  // Compiles what follows, once a tree of CompiledPreambleTree() is mounted.
  exec::Action rest;
};

// `host_compile`: a phase of nvcc with all of its inputs; `host_text`: that which it compiles. `next_line`: the line
// that follows the preamble (PreamblePass). nullopt if the text does not say where that is, or if a pragma of the
// preamble may change the meaning of what follows: GCC's precompiled headers lose such state (`#pragma pack(1)`).
std::optional<SplitHostCompile> SplitAfterPreamble(const Step& host_compile, const std::string& host_text,
                                                   std::string_view next_line);

// The files of the precompiled header's folder. `header`: what SplitHostCompile::preamble has made.
std::vector<exec::InputFile> CompiledPreambleFiles(exec::Content header);

// The output of SplitHostCompile::preamble that is the precompiled header.
const std::string& CompiledHeaderOf(const Step& preamble);

}  // namespace kernix::build
