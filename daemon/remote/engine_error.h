// SPDX-License-Identifier: Apache-2.0
//
// What an engine answered: as an error for the person who runs kernixd, and whether and when to try again.
#pragma once

#include <grpcpp/support/status.h>

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

// `status` must not be OK. `asked` says what the engine was to do: "find a result". The code stays that of `status`;
// upstream.h lists the kinds.
absl::Status EngineError(const grpc::Status& status, const UpstreamOptions& options, std::string_view asked);

inline constexpr int kMaxTries = 4;

// Whether the same call may succeed later: the engine is away, has no room, or the connection broke.
bool MayWorkLater(const grpc::Status& status);

// How long the engine asks to wait (google.rpc.RetryInfo), if it does.
std::optional<Duration> AskedPause(const grpc::Status& status);

// How long to wait before the nth retry, from 1: longer each time, and never the same for two callers, so that they do
// not come back together.
Duration PauseBeforeRetry(int retry);

}  // namespace kernix::remote
