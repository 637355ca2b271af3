// SPDX-License-Identifier: Apache-2.0
//
// How blobs are named: to an engine in a stream, and to people in errors. Internal to the room.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "daemon/exec/blob_digest.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

std::string DownloadName(const std::string& instance, const exec::BlobDigest& digest, bool zstd);

// Another one with each call.
std::string UploadName(const std::string& instance, const exec::BlobDigest& digest, bool zstd);

// "blob 0123456789ab... (17 bytes)"
std::string Describe(const exec::BlobDigest& digest);

// For EngineError().
std::string AskedToSend(const exec::BlobDigest& digest);

// The engine sent bytes that do not have this digest.
absl::Status WrongBytes(const UpstreamOptions& options, const exec::BlobDigest& digest);

// Its answer says nothing of this blob.
absl::Status LeftOut(const UpstreamOptions& options, const exec::BlobDigest& digest);

}  // namespace kernix::remote
