// SPDX-License-Identifier: Apache-2.0
//
// A file whose content was digested once.
#pragma once

#include <string>

#include "common/base/digest.h"
#include "common/os/file_identity.h"

namespace kernix {

struct KnownFile {
  std::string path;
  FileIdentity identity;  // when it was digested
  Digest digest;
};

}  // namespace kernix
