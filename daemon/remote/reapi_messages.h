// SPDX-License-Identifier: Apache-2.0
//
// Digests and results as messages. Internal to the room.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "daemon/exec/blob.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

// INTERNAL if a file has no digest of SHA-256.
absl::StatusOr<std::vector<OutputFile>> FilesOf(const UpstreamOptions& options,
                                                const build::bazel::remote::execution::v2::ActionResult& result);

inline void SetDigest(const exec::BlobDigest& digest, build::bazel::remote::execution::v2::Digest& message) {
  message.set_hash(digest.hash.Hex());
  message.set_size_bytes(static_cast<int64_t>(digest.size));
}

// Nothing if it is not a digest of SHA-256.
inline std::optional<exec::BlobDigest> GetDigest(const build::bazel::remote::execution::v2::Digest& message) {
  const absl::StatusOr<Digest> hash = Digest::FromHex(message.hash());
  if (!hash.ok() || message.size_bytes() < 0) return std::nullopt;
  return exec::BlobDigest{*hash, static_cast<uint64_t>(message.size_bytes())};
}

}  // namespace kernix::remote
