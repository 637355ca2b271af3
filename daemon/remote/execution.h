// SPDX-License-Identifier: Apache-2.0
//
// One execution of an action by an engine: its stream, which may break, its end, and the files of its result. Internal
// to the room.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/exec/blob.h"
#include "daemon/remote/connection.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

// Starts the action, whose messages and inputs the engine must have, and follows it to its end. A stream that breaks is
// picked up again where it was. If it ends before the action does (a cancellation, a limit), the engine is told to stop
// the action. If the action still waits for a worker then, the error is one of IsNoWorker().
absl::StatusOr<Execution> Execute(Connection& connection, const Limits& limits, const exec::BlobDigest& action,
                                  const ExecuteOptions& options);

// The files of a result. INTERNAL if one has no digest of SHA-256.
absl::StatusOr<std::vector<OutputFile>> FilesOf(const UpstreamOptions& options, const reapi::ActionResult& result);

}  // namespace kernix::remote
