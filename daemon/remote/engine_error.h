// SPDX-License-Identifier: Apache-2.0
//
// What an engine answered, as an error for the person who runs kernixd.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

// `status` must not be OK. `asked` says what the engine was to do: "find a result". The code stays that of `status`;
// upstream.h lists the kinds.
absl::Status EngineError(const grpc::Status& status, const UpstreamOptions& options, std::string_view asked);

}  // namespace kernix::remote
