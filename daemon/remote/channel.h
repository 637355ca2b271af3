// SPDX-License-Identifier: Apache-2.0
//
// The gRPC channel to an engine.
#pragma once

#include <grpcpp/channel.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/remote/engine_address.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

// Reads the files that `options` names for TLS. Does not connect. INVALID_REQUEST if one cannot be read, or does not go
// with the others or with the address.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(Env& env, const UpstreamOptions& options,
                                                           const EngineAddress& address);

}  // namespace kernix::remote
