// SPDX-License-Identifier: Apache-2.0
//
// What a load has to know of a header's content.
#pragma once

#include <cstdint>
#include <memory>

#include "client/src/include_scan.h"
#include "daemon/base/digest.h"
#include "daemon/base/env.h"

namespace kernix {

struct HeaderFile {
  Digest digest;
  uint64_t size = 0;
  ScannedText text;
};

using HeaderFilePtr = std::shared_ptr<const HeaderFile>;

// Whether what stat(2) says leaves no room for another content.
inline bool SameFile(const FileInfo& a, const FileInfo& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size && a.mtime_ns == b.mtime_ns &&
         a.ctime_ns == b.ctime_ns;
}

}  // namespace kernix
