// SPDX-License-Identifier: Apache-2.0
//
// A unit's preamble (the term is Clang's): the #includes that it begins with. What the preprocessor makes of them, text
// and macros, serves every unit that begins with the same ones; then only what follows them is preprocessed.
//
// Units differ from those of a whole call in one line: a declaration without effect where the preamble ends, so that
// its end can be found in the preprocessed text. The text is the same, byte for byte, whether the preamble was kept or
// not: later steps cannot tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/plan/nvcc_phases.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// What is kept of a preamble, and how its macros are learned.
struct PreambleForm {
  // Not to run: the digest and the outputs under which the step cache keeps it.
  Step kept;
  std::string text;
  std::string macros;  // directives that define what the preamble has defined
  std::string files;   // the files that it was made from, in Makefile syntax

  Step macros_after;        // writes the preamble with its definitions of macros
  std::string definitions;  // directives to add to `macros`
};

// One pass of the preprocessor over a unit that has a preamble.
struct PreamblePass {
  std::string unit;    // its path
  Step whole;          // with the line that marks the preamble's end
  Step macros_before;  // writes the definitions before the preamble
  // The best one first. If flags define macros, the first form serves units with any values of these; it cannot be
  // learned if the preamble uses one. The second one is for these values.
  std::vector<PreambleForm> forms;
  Step rest;  // preprocesses what follows the preamble; needs the macros as an input
};

// nullopt if the unit has no preamble, or the pass is not of a form that we know.
std::optional<PreamblePass> SplitPass(const Phases& phases, size_t pass);

// The path of PreamblePass::rest's input with the macros.
inline constexpr char kPreambleMacros[] = "kernix-preamble/macros.h";

// The preamble's part of what PreamblePass::whole has made; nullopt: not found.
std::optional<std::string_view> PreambleText(std::string_view whole);

// The directives that lead from the definitions in one text (-dD) to those in another, in headers of the same kind: the
// preprocessor marks what macros of the system's headers make.
std::string MacrosToAdd(std::string_view before, std::string_view after);

// What is to follow the preamble's text: a part of what PreamblePass::rest has made. nullopt if it is not certain that
// PreamblePass::whole would have made the same.
std::optional<std::string_view> RestText(std::string_view rest);

}  // namespace kernix::build
