// SPDX-License-Identifier: Apache-2.0
//
// Which blobs travel together in one message, and which one in a stream of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/exec/blob_digest.h"

namespace kernix::remote {

// What one message may hold of blobs, if the engine says `advertised`. gRPC refuses messages of more than 4 MiB unless
// a server allows more, so an engine that advertises more gets streams for what is larger. One that names no limit (0)
// may have one all the same, and gets 2 MiB less 64 KiB.
uint64_t UsableBatchBytes(int64_t advertised);

struct BlobBatches {
  std::vector<std::vector<size_t>> batches;  // of indexes; none is empty
  std::vector<size_t> streams;               // too large for any batch
};

BlobBatches SplitIntoBatches(const std::vector<exec::BlobDigest>& digests, uint64_t max_batch_bytes);

}  // namespace kernix::remote
