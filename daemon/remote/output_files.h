// SPDX-License-Identifier: Apache-2.0
//
// The files of an engine's result. Internal to the room.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

// INTERNAL if a file has no digest of SHA-256.
absl::StatusOr<std::vector<OutputFile>> FilesOf(const UpstreamOptions& options,
                                                const build::bazel::remote::execution::v2::ActionResult& result);

}  // namespace kernix::remote
