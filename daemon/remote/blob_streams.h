// SPDX-License-Identifier: Apache-2.0
//
// A blob in a stream of its own (google.bytestream). Internal to the room.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/remote/connection.h"

namespace kernix::remote {

// The blob's bytes, checked against the digest. It takes no more memory than the digest says, and half as much again
// with `zstd`, with which it travels compressed.
absl::StatusOr<exec::Content> ReadStream(Connection& connection, const Limits& limits, const exec::BlobDigest& digest,
                                         bool zstd);

absl::Status WriteStream(Connection& connection, const Limits& limits, const Blob& blob, bool zstd);

}  // namespace kernix::remote
