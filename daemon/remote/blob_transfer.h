// SPDX-License-Identifier: Apache-2.0
//
// Moves blobs, many small ones in a message and large ones in streams. Internal to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/exec/blob.h"
#include "daemon/remote/connection.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

// The blobs that the engine does not have.
absl::StatusOr<std::set<exec::BlobDigest>> FindMissing(Connection& connection, const Limits& limits,
                                                       const std::set<exec::BlobDigest>& digests);

// As Upstream::Read(). An empty blob needs no engine.
absl::StatusOr<std::map<exec::BlobDigest, exec::Content>> ReadBlobs(Connection& connection, const Limits& limits,
                                                                    const UpstreamFacts& facts,
                                                                    const std::set<exec::BlobDigest>& digests);

// Sends each blob, whether the engine has it or not. Loads one message's or one stream's at a time.
absl::Status WriteBlobs(Connection& connection, const Limits& limits, const UpstreamFacts& facts,
                        const std::set<exec::BlobDigest>& digests, const LoadBlob& load);

// The resource of a blob that travels in a stream of its own (google.bytestream). An upload has another one each time.
std::string DownloadName(const std::string& instance, const exec::BlobDigest& digest);
std::string UploadName(const std::string& instance, const exec::BlobDigest& digest);

// The blobs that travel together in one message, or one blob in its own stream.

// The bytes of blobs that one message may hold, if the engine says `advertised`. gRPC refuses messages of more than 4
// MiB unless a server allows more, so larger blobs travel in streams even if an engine advertises more. An engine that
// names no limit (0) may still have one, and gets 2 MiB less 64 KiB.
uint64_t UsableBatchBytes(int64_t advertised);

struct BlobBatches {
  std::vector<std::vector<size_t>> batches;  // of indexes; none is empty
  std::vector<size_t> streams;               // too large for any batch
};

BlobBatches SplitIntoBatches(const std::vector<exec::BlobDigest>& digests, uint64_t max_batch_bytes);

}  // namespace kernix::remote
