// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "daemon/exec/executor.h"

namespace kernix::exec {

// Runs each action in the caller's thread.
std::unique_ptr<Executor> MakeInlineExecutor(Env& env, RunOptions options);

}  // namespace kernix::exec
