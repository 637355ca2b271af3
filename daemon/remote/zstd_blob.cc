// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/zstd_blob.h"

#include <zstd.h>

#include "common/base/strings.h"

namespace kernix::remote {
namespace {

constexpr int kLevel = 1;                               // artifacts are small, and a network is fast
constexpr uint64_t kRoomForFrames = uint64_t{1} << 20;  // an engine may make several frames of a blob

}  // namespace

absl::StatusOr<std::string> CompressBlob(std::string_view bytes) {
  std::string compressed(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(compressed.data(), compressed.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) != 0) return absl::InternalError(StrCat("zstd: ", ZSTD_getErrorName(size)));
  compressed.resize(size);
  return compressed;
}

uint64_t MostCompressedBytes(uint64_t size) { return ZSTD_compressBound(size) + kRoomForFrames; }

absl::StatusOr<std::string> DecompressBlob(std::string_view compressed, uint64_t size) {
  std::string bytes(size, '\0');
  const size_t got = ZSTD_decompress(bytes.data(), bytes.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(got) != 0) return absl::DataLossError(StrCat("zstd: ", ZSTD_getErrorName(got)));
  if (got != size) return absl::DataLossError(StrCat("zstd: ", got, " bytes instead of ", size));
  return bytes;
}

}  // namespace kernix::remote
