// SPDX-License-Identifier: Apache-2.0
//
// nvcc's phases with a stand-in for CUDA's runtime header (language/read/runtime_names.h), and the questions to the
// preprocessor from which kernixd learns a stand-in's missing names.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/language/read/runtime_names.h"
#include "daemon/plan/nvcc_phases.h"

namespace kernix::build {

// Whether a stand-in can serve these phases: the place of the toolkit's headers is known, and nothing describes to a
// debugger what the headers declare.
bool MayTakeStandIn(const Phases& phases);

// `phases` with the stand-in of `parts` in some passes. This and the functions below need MayTakeStandIn(phases).
Phases WithStandIn(Phases phases, const std::set<size_t>& passes, language::RuntimeParts parts);

// A question to the preprocessor: what it makes of an empty unit.
struct RuntimeProbe {
  Step step;
  std::string text;          // outputs of the step: the preprocessed text,
  std::string dependencies;  // and the files that it was made from
};

// The questions about one pass, with the toolkit's own header and with the stand-in. The load's own headers are not
// there, and neither is `__CUDA_ARCH_LIST__`, so that the answers serve many loads.
struct RuntimeProbes {
  RuntimeProbe whole;
  RuntimeProbe slim;
};
RuntimeProbes ProbesFor(const Phases& phases, size_t pass, language::RuntimeParts parts);
inline constexpr char kArchitectureList[] = "__CUDA_ARCH_LIST__";

// Not to run: the digest and the outputs under which the step cache keeps what the answers say.
struct RuntimeLesson {
  Step step;
  std::string names;       // an output: RuntimeNames::ToText()
  std::string slim_files;  // the files of the stand-in; this and the next are in Makefile syntax
  std::string files;       // all files
};
RuntimeLesson LessonOf(const RuntimeProbes& probes);

}  // namespace kernix::build
