// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"

namespace kernix {

// The SHA-256 of a file's content. Holds a small piece of it at a time: fresh memory for a large file would take longer
// than reading it. Returns the status of ReadAt() on an error.
absl::StatusOr<Digest> DigestOfFile(ReadableFile& file);

}  // namespace kernix
