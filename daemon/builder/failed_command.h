// SPDX-License-Identifier: Apache-2.0
//
// What a user needs to run a command of a build again.
#pragma once

#include "absl/status/status.h"
#include "daemon/exec/action.h"

namespace kernix::build {

// Adds to the error of `action` what it takes to run it again. Not for a shared daemon: an action may have files of the
// machine among its inputs. If they are very large, the error stays as it is.
absl::Status WithFailedCommand(const absl::Status& error, const exec::Action& action);

}  // namespace kernix::build
