// SPDX-License-Identifier: Apache-2.0
//
// The key under which a load's artifact is kept.
#pragma once

#include "common/base/digest.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"

namespace kernix::build {

// Of the plan's last step, and of what the result says of its functions. A step's digest is that of its action; an
// input that another step makes stands in it as that step's digest and the output's name. So the key covers every
// command, variable, input and tool that the artifact is made from, and nothing of where, by whom or how fast it is
// made.
Digest LoadKey(const BuildRequest& request, const Plan& plan);

}  // namespace kernix::build
