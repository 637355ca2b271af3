// SPDX-License-Identifier: Apache-2.0
//
// Moves blobs, many small ones in a message and large ones in streams. Internal to the room.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/remote/connection.h"

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

}  // namespace kernix::remote
