// SPDX-License-Identifier: Apache-2.0
//
// Copies of artifacts whose daemon keeps them where we cannot open them, or may not run them from.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"
#include "client/connection/connector.h"
#include "client/connection/fork_gate.h"
#include "common/base/digest.h"

namespace kernix {

// Where this user's copy of `digest` lies or shall lie: <default store>/fetched/<digest>.so.
absl::StatusOr<std::string> FetchedArtifactPath(const ClientEnvironment& environment, const Digest& digest);

// Makes `folder`, where fetched artifacts are kept. RESOURCE, naming the owner, when somebody else could put a file
// there: what lies in it is run.
absl::Status EnsureFetchedFolder(const ClientEnvironment& environment, const std::string& folder);

// Streams the artifact. NOT_FOUND when the daemon has it no more; INTERNAL when it sends something else.
absl::StatusOr<std::string> DownloadArtifact(Session& session, const Digest& digest, uint64_t size,
                                             ForkGate::Section& section);

}  // namespace kernix
