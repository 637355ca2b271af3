// SPDX-License-Identifier: Apache-2.0
//
// How long a client waits for a daemon in which its user has too much under way.
#pragma once

#include <chrono>

#include "absl/status/status.h"

namespace kernix {

// The pause before the call that ended with `status` is made again, for the nth time, from 1: what the daemon says
// (RetryAfter()), doubled each time up to 16 times as long, and less by up to a half, so that many processes do not
// come back together. Zero: the call has ended for another reason.
std::chrono::milliseconds BusyPause(const absl::Status& status, int repetition);

}  // namespace kernix
