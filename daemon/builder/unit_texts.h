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

// A guess from the sources and the request's headers: it tells which stand-in to preprocess with. A unit that includes
// headers of the toolkit, apart from those of the runtime header, gets the whole one: what they take, no guess sees,
// and they take longer to read than what a stand-in leaves out.
language::RuntimeChoice GuessRuntime(Env& env, const KnownRuntime& known, const Phases& phases,
                                     const toolchain::Toolchain& toolchain);

// Represents the headers that the sources of `phases` include, as they name them.
Digest HeadOf(const Phases& phases);

// The choice for the passes of `phases` that read the stand-in that `known` is about: `outputs` is what preprocessing
// has made. The whole header if a file cannot be read.
language::RuntimeChoice ChooseRuntime(Env& env, const KnownRuntime& known, const Phases& phases,
                                      const PlanOutputs& outputs, const toolchain::Toolchain& toolchain);

}  // namespace kernix::build
