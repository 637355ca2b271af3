// SPDX-License-Identifier: Apache-2.0
//
// Blobs as engines send and take them compressed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kernix::remote {

absl::StatusOr<std::string> CompressBlob(std::string_view bytes);

// More than a compressed blob of `size` bytes ever has.
uint64_t MostCompressedBytes(uint64_t size);

// The `size` bytes that `compressed` stands for. An error if it stands for another number of bytes, or for none.
absl::StatusOr<std::string> DecompressBlob(std::string_view compressed, uint64_t size);

}  // namespace kernix::remote
