// SPDX-License-Identifier: Apache-2.0
//
// What a unit's texts and headers name: which parts of CUDA's runtime header it needs (language/read/runtime_names.h).
#pragma once

#include "common/base/digest.h"
#include "common/os/env.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/stand_ins.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/plan/nvcc_phases.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// The content of a file of the action's root, or of the toolchain, as a tool has named it. Tools may name other files,
// even some that their user cannot read: kNotFound.
absl::StatusOr<std::string> ReadFileOf(Env& env, const exec::Action& action, const toolchain::Toolchain& toolchain,
                                       const std::string& name);

// A guess from the sources and the request's headers: which stand-in to preprocess with. A unit gets the whole header
// if it includes headers of the toolkit other than the runtime header's: a guess cannot know which names they use, and
// reading them takes longer than the parts that a stand-in leaves out.
language::RuntimeChoice GuessRuntime(Env& env, const KnownRuntime& known, const Phases& phases,
                                     const toolchain::Toolchain& toolchain);

// Represents the headers that the sources of `phases` include, as they name them.
Digest HeadOf(const Phases& phases);

// The choice for the passes of `phases` that read the stand-in of `known`, from the `outputs` of preprocessing. The
// whole header if a file cannot be read.
language::RuntimeChoice ChooseRuntime(Env& env, const KnownRuntime& known, const Phases& phases,
                                      const PlanOutputs& outputs, const toolchain::Toolchain& toolchain);

}  // namespace kernix::build
