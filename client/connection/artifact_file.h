// SPDX-License-Identifier: Apache-2.0
//
// The file of an artifact that this process opens: the daemon's own, if this process may run it from there, or else a
// copy that it fetches.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/connector.h"
#include "client/connection/endpoint.h"
#include "client/connection/grpc_call.h"
#include "common/base/digest.h"

namespace kernix {

// Returns the path, without links, of the artifact at `path`: a regular file of `size` bytes that belongs to root, this
// user or the machine's service, and that no other user can write to or replace. So the file at that path later is the
// file that was checked, and the loader can open it. Does not read the content.
//
// Returns kNotFound if the file is missing or is a different one, and kPermissionDenied if it may not be run or cannot
// be read. Thread-safe.
absl::StatusOr<std::string> CheckArtifact(const ClientEnvironment& environment, const std::string& path, uint64_t size);

// Copies of artifacts that this process cannot open in the daemon's store, or may not run from there.

// The path of this user's copy of `digest`, which need not exist yet: <default store>/fetched/<digest>.so.
absl::StatusOr<std::string> FetchedArtifactPath(const ClientEnvironment& environment, const Digest& digest);

// Creates `folder` for fetched artifacts. Returns RESOURCE, with the owner's name, if another user could put a file
// there, because this process runs the files in it.
absl::Status EnsureFetchedFolder(const ClientEnvironment& environment, const std::string& folder);

// Streams the artifact. Returns NOT_FOUND if the daemon no longer has it, and INTERNAL if the daemon sends other
// content.
absl::StatusOr<std::string> DownloadArtifact(const Session& session, const Digest& digest, uint64_t size,
                                             Caller& caller);

}  // namespace kernix
