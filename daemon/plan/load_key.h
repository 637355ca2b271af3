// SPDX-License-Identifier: Apache-2.0
//
// The key under which the store keeps a load's artifact.
#pragma once

#include "common/base/digest.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"

namespace kernix::build {

// The key covers the digest of the plan's last step, the functions that the result lists, and the artifact's texts for
// people: the labels of the sources, and texts that steps make. A step's digest is that of its action; an input that
// another step makes is represented by that step's digest and the output's name. So the key covers every command,
// variable, input and tool that the artifact is made from. It does not cover where, by whom or how fast the artifact is
// made.
Digest LoadKey(const BuildRequest& request, const Plan& plan);

}  // namespace kernix::build
