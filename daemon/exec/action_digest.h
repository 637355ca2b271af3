// SPDX-License-Identifier: Apache-2.0
//
// The digest of an action: of its command, its input root and the identity of its tools, as the Remote Execution API
// makes it.
#pragma once

#include <vector>

#include "daemon/exec/action.h"
#include "daemon/exec/blob_digest.h"

namespace kernix::exec {

// Covers words, variables, outputs, inputs and trees by their digests, and the salt; not how the action is run here:
// links to tools, local words and paths, time limit, memory, jobs. `more_inputs`: inputs that `action` lacks yet.
BlobDigest DigestOfAction(const Action& action, const std::vector<InputFile>& more_inputs = {});

}  // namespace kernix::exec
