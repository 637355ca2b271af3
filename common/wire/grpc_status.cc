// SPDX-License-Identifier: Apache-2.0
#include "common/wire/grpc_status.h"

#include "common/wire/call_status.h"

namespace kernix {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  const CallStatus call = ToCallStatus(status);
  return {static_cast<grpc::StatusCode>(call.code), call.message, call.details};
}

absl::Status FromGrpcStatus(const grpc::Status& status, std::string_view what) {
  return FromCallStatus(
      {static_cast<absl::StatusCode>(status.error_code()), status.error_message(), status.error_details()}, what);
}

}  // namespace kernix
