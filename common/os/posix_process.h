// SPDX-License-Identifier: Apache-2.0
//
// The process functions of Env::Posix().
#pragma once

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::posix {

// See Env::RunProcess().
absl::StatusOr<ProcessResult> RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                         Cancellation* cancellation);

}  // namespace kernix::posix
