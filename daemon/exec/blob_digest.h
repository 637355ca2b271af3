// SPDX-License-Identifier: Apache-2.0
//
// How the Remote Execution API identifies a blob: by hash and size.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "common/base/digest.h"

namespace kernix::exec {

struct BlobDigest {
  Digest hash;        // SHA-256 of the bytes
  uint64_t size = 0;  // in bytes

  auto operator<=>(const BlobDigest&) const = default;
};

inline BlobDigest BlobDigestOf(std::string_view bytes) { return {DigestOf(bytes), bytes.size()}; }

}  // namespace kernix::exec
