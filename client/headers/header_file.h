// SPDX-License-Identifier: Apache-2.0
//
// The facts about a header's content that a load needs.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/digest.h"
#include "common/cxx/include_scan.h"

namespace kernix {

struct HeaderFile {
  Digest digest;
  uint64_t size = 0;
  ScannedText text;
};

using HeaderFilePtr = std::shared_ptr<const HeaderFile>;

}  // namespace kernix
