// SPDX-License-Identifier: Apache-2.0
//
// Splits a pass of the preprocessor after the unit's preamble (the term is Clang's): its first #includes. Their
// preprocessed text and macros serve every unit with the same first #includes; then only the rest of a unit is
// preprocessed.
//
// Everything kept of a preamble comes from passes over the preamble alone: no unit that begins with it can affect
// others. The texts join to that of a whole pass, byte for byte, so later steps see no difference. Before a preamble is
// kept, the texts are compared for one unit, which decides only whether it is kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/plan/nvcc_phases.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// The kept parts of a preamble, and the steps that learn its macros.
struct PreambleForm {
  // Not to run: the digest and the outputs under which the step cache keeps it.
  Step kept;
  std::string text;
  std::string macros;  // directives that define what the preamble has defined
  std::string files;   // the files that it was made from, in Makefile syntax

  Step alone;               // makes the text (PreambleText())
  Step macros_after;        // lists the macros after the preamble (-dM)
  Step definitions_after;   // shows where they are defined (-dD)
  std::string definitions;  // directives to add to `macros`
};

// One pass of the preprocessor over a unit that has a preamble.
struct PreamblePass {
  std::string unit;       // its path
  std::string next_line;  // the line that follows the preamble, as line markers name it: `7 "kernel.cu"`
  std::string code_line;  // the same, or what a #line directive there calls the line after it
  Step macros_before;     // lists the macros before the preamble (-dM)
  // The best one first. If flags define macros, the first form serves units with any values of these; it cannot be
  // learned if the preamble uses one. The second one is for these values.
  std::vector<PreambleForm> forms;
  Step rest;  // preprocesses what follows the preamble in the unit; needs the macros as an input
};

// nullopt if the unit has no preamble, if the rest depends on more than text and macros, or if the form of the pass is
// unknown.
std::optional<PreamblePass> SplitPass(const Phases& phases, size_t pass);

// The path of PreamblePass::rest's input with the macros.
inline constexpr char kPreambleMacros[] = "kernix-preamble/macros.h";

// Directives that lead from one list of macros (-dM) to another, and a token, which a system's header may have written:
// the preprocessor marks where text of such headers ends. `definitions` (-dD) tells which macros are of such headers.
// nullopt if it does not tell that.
std::optional<std::string> MacrosToAdd(std::string_view before, std::string_view after, std::string_view definitions,
                                       bool ends_in_system_header);

// Whether the last token of a preprocessed text is in a header of the system.
bool EndsInSystemHeader(std::string_view preprocessed);

// The text after the preamble's: a part of the output of PreamblePass::rest. nullopt if it is not certain that a whole
// pass would have made the same.
std::optional<std::string_view> RestText(const PreamblePass& pass, std::string_view made);

// The preamble's text: a part of the output of PreambleForm::alone. nullopt if its end is not certain.
std::optional<std::string_view> PreambleText(const PreamblePass& pass, std::string_view made);

// Used by split_compile.cc, too.

// The input of that path; null if there is none, or if its content is not there.
const exec::InputFile* FindInput(const exec::Action& action, const std::string& path);

// Adds or replaces an input.
void SetInput(exec::Action& action, const std::string& path, std::string_view text);

// The name that `#define NAME(a) ...` or `#undef NAME` is about; empty for another directive than that one.
std::string_view NameIn(std::string_view line, std::string_view directive = "#define ");

}  // namespace kernix::build
