// SPDX-License-Identifier: Apache-2.0
#include "common/os/file_digest.h"

#include <string>
#include <string_view>

#include "common/base/status_macros.h"

namespace kernix {

absl::StatusOr<Digest> DigestOfFile(ReadableFile& file) {
  constexpr size_t kPieceBytes = 256 << 10;
  Sha256 sha;
  std::string piece(kPieceBytes, '\0');
  for (uint64_t offset = 0;;) {
    KERNIX_ASSIGN_OR_RETURN(const size_t count, file.ReadAt(offset, piece));
    if (count == 0) return sha.Finish();
    sha.Update(std::string_view(piece).substr(0, count));
    offset += count;
  }
}

}  // namespace kernix
