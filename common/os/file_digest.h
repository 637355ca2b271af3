// SPDX-License-Identifier: Apache-2.0
//
// The digest of a file, and a file whose content has been digested.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix {

// The SHA-256 of a file's content. Holds a small piece of it at a time: fresh memory for a large file would take longer
// than reading it. Returns the status of ReadAt() on an error.
absl::StatusOr<Digest> DigestOfFile(ReadableFile& file);

// A file whose content has been digested.
struct KnownFile {
  std::string path;
  FileIdentity identity;  // at the time of the digest
  Digest digest;
};

}  // namespace kernix
