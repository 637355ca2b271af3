// SPDX-License-Identifier: Apache-2.0
//
// A file whose content has been digested.
#pragma once

#include <string>

#include "common/base/digest.h"
#include "common/os/file_identity.h"

namespace kernix {

struct KnownFile {
  std::string path;
  FileIdentity identity;  // at the time of the digest
  Digest digest;
};

}  // namespace kernix
