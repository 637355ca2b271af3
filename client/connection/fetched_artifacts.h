// SPDX-License-Identifier: Apache-2.0
//
// Copies of artifacts that this process cannot open in the daemon's store, or may not run from there.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/caller.h"
#include "client/connection/client_environment.h"
#include "client/connection/connector.h"
#include "common/base/digest.h"

namespace kernix {

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
