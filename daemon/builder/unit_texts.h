// SPDX-License-Identifier: Apache-2.0
//
// Chooses the stand-in for CUDA's runtime header that a unit is compiled with (language/read/runtime_names.h).
#pragma once

#include "common/base/digest.h"
#include "common/os/env.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/runtime_knowledge.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/plan/nvcc_phases.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// A guess from the sources alone: it tells which stand-in to preprocess with.
language::RuntimeChoice GuessRuntime(const KnownRuntime& known, const Phases& phases);

// Represents the headers that the sources of `phases` include, as they name them. Units of the same headers mostly take
// the same parts for them, which no guess sees.
Digest IncludedNames(const Phases& phases);

// The choice for the passes of `phases` that read the stand-in that `known` is about: `outputs` is what preprocessing
// has made. The whole header if a file cannot be read.
language::RuntimeChoice ChooseRuntime(Env& env, const KnownRuntime& known, const Phases& phases,
                                      const PlanOutputs& outputs, const toolchain::Toolchain& toolchain);

}  // namespace kernix::build
