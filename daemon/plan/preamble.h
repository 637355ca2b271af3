// SPDX-License-Identifier: Apache-2.0
//
// A unit's preamble (the term is Clang's): the #includes that it begins with. What the preprocessor makes of them, text
// and macros, serves every unit that begins with the same ones; then only what follows them is preprocessed.
//
// All that is kept of a preamble comes from passes over the preamble alone: no unit that begins with it has a part in
// what others get. The texts join to that of a whole pass, byte for byte, and later steps cannot tell. Whoever keeps a
// preamble has compared them for one unit, which decides only whether it is kept.
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

// nullopt if the unit has no preamble, if what follows depends on more than that, or if the pass is not of a form that
// we know.
std::optional<PreamblePass> SplitPass(const Phases& phases, size_t pass);

// The path of PreamblePass::rest's input with the macros.
inline constexpr char kPreambleMacros[] = "kernix-preamble/macros.h";

// Directives that lead from one list of macros (-dM) to another, and a token, which a system's header may have written:
// the preprocessor marks where text of such headers ends. `definitions` (-dD) tells which macros are of such headers.
// nullopt if it does not tell that.
std::optional<std::string> MacrosToAdd(std::string_view before, std::string_view after, std::string_view definitions,
                                       bool ends_in_system_header);

// Whether the last token of a preprocessed text stands in a header of the system.
bool EndsInSystemHeader(std::string_view preprocessed);

// What follows the preamble's text: a part of what PreamblePass::rest has made. nullopt if it is not certain that a
// whole pass would have made the same.
std::optional<std::string_view> RestText(const PreamblePass& pass, std::string_view made);

// The preamble's text: a part of what PreambleForm::alone has made. nullopt if its end is not certain.
std::optional<std::string_view> PreambleText(const PreamblePass& pass, std::string_view made);

// What compiled_preamble.cc needs, too.

// The input of that path; null if there is none, or if its content is not there.
const exec::InputFile* FindInput(const exec::Action& action, const std::string& path);

// Adds or replaces an input.
void SetInput(exec::Action& action, const std::string& path, std::string_view text);

// The name that `#define NAME(a) ...` or `#undef NAME` is about; empty for another directive than that one.
std::string_view NameIn(std::string_view line, std::string_view directive = "#define ");

}  // namespace kernix::build
