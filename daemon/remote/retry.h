// SPDX-License-Identifier: Apache-2.0
//
// When to try a call again.
#pragma once

#include <grpcpp/support/status.h>

#include <optional>

#include "common/os/env.h"

namespace kernix::remote {

inline constexpr int kMaxTries = 4;

// Whether the same call may succeed later: the engine is away, has no room, or the connection broke.
bool MayWorkLater(const grpc::Status& status);

// How long the engine asks to wait (google.rpc.RetryInfo), if it does.
std::optional<Duration> AskedPause(const grpc::Status& status);

// How long to wait before the nth retry, from 1: longer each time, and never the same for two callers, so that they do
// not come back together.
Duration PauseBeforeRetry(int retry);

}  // namespace kernix::remote
