// SPDX-License-Identifier: Apache-2.0
//
// common/wire/call_status.h for gRPC's library, which only the daemon has. daemon/remote/connection.h does it for
// calls of an engine. No other code does.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"
#include "common/wire/call_status.h"

namespace kernix {

inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  const CallStatus call = ToCallStatus(status);
  return {static_cast<grpc::StatusCode>(call.code), call.message, call.details};
}

inline absl::Status FromGrpcStatus(const grpc::Status& status, std::string_view what) {
  return FromCallStatus(
      {static_cast<absl::StatusCode>(status.error_code()), status.error_message(), status.error_details()}, what);
}

}  // namespace kernix
