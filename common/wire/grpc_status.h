// SPDX-License-Identifier: Apache-2.0
//
// common/wire/call_status.h for gRPC's library, which only the daemon has. daemon/remote/engine_error.h does it for
// calls of an engine. No other code does.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace kernix {

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status, std::string_view what);

}  // namespace kernix
