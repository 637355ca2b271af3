// SPDX-License-Identifier: Apache-2.0
//
// The digest of an action, as the Remote Execution API defines it: it covers the command, the input root and the
// identity of the tools.
#pragma once

#include <vector>

#include "daemon/exec/action.h"
#include "daemon/exec/blob_digest.h"

namespace kernix::exec {

// Covers argv, environment, outputs, the digests of inputs and trees, and the salt. Does not cover how the action runs
// on this machine: links to tools, local words and paths, time limit, memory, jobs. `more_inputs`: inputs that `action`
// does not list yet.
BlobDigest DigestOfAction(const Action& action, const std::vector<InputFile>& more_inputs = {});

}  // namespace kernix::exec
