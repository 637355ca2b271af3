// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/blob_batches.h"

#include <algorithm>

namespace kernix::remote {
namespace {

// The default limit of gRPC for a message, less room for what stands around the blobs.
constexpr uint64_t kMostBatchBytes = (uint64_t{4} << 20) - (uint64_t{64} << 10);
// Buildbarn names no limit, and in its example deployment refuses what is larger than 2 MiB.
constexpr uint64_t kUnnamedBatchBytes = (uint64_t{2} << 20) - (uint64_t{64} << 10);
// Beside a blob's bytes, a message has its digest (68 bytes and a size), lengths, perhaps a status.
constexpr uint64_t kOverhead = 128;

}  // namespace

uint64_t UsableBatchBytes(int64_t advertised) {
  return advertised <= 0 ? kUnnamedBatchBytes : std::min(kMostBatchBytes, static_cast<uint64_t>(advertised));
}

BlobBatches SplitIntoBatches(const std::vector<exec::BlobDigest>& digests, uint64_t max_batch_bytes) {
  BlobBatches split;
  uint64_t room = 0;
  for (size_t i = 0; i < digests.size(); ++i) {
    const uint64_t size = digests[i].size + kOverhead;
    if (size > max_batch_bytes) {
      split.streams.push_back(i);
      continue;
    }
    if (size > room) {
      split.batches.emplace_back();
      room = max_batch_bytes;
    }
    split.batches.back().push_back(i);
    room -= size;
  }
  return split;
}

}  // namespace kernix::remote
