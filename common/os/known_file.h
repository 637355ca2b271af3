// SPDX-License-Identifier: Apache-2.0
//
// A file whose content was digested once.
#pragma once

#include <string>

#include "common/base/digest.h"
#include "common/os/env.h"

namespace kernix {

struct KnownFile {
  std::string path;
  FileInfo info;  // size, times, inode and device as they were when it was digested
  Digest digest;
};

}  // namespace kernix
