// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/status_conversion.h"

#include <string>
#include <utility>

#include "daemon/base/error.h"
#include "daemon/base/strings.h"
#include "daemon/base/utf8.h"
#include "daemon/server/rpc_status.pb.h"

namespace kernix::server {
namespace {

// Headers count percent-encoded, three bytes for each that is not ASCII, and the message goes in three times: twice
// inside the details.
constexpr size_t kLongestMessage = 1000;

std::string Shorten(std::string text) {
  if (text.size() <= kLongestMessage) return text;
  text.resize(kLongestMessage);
  text.resize(CompleteUtf8Prefix(text));
  return text + "...";
}

RpcStatus MakeRpcStatus(const v1::ErrorDetail& detail) {
  RpcStatus status;
  status.set_code(detail.code());
  status.set_message(detail.message());
  status.add_details()->PackFrom(detail);
  return status;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorDetail detail = GetErrorDetail(status);
  detail.set_message(Shorten(detail.message()));
  detail.clear_compiler_output();
  detail.clear_command();
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), detail.message(),
                      MakeRpcStatus(detail).SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  RpcStatus rpc;
  v1::ErrorDetail detail;
  if (rpc.ParseFromString(status.error_details()) && rpc.details_size() > 0 && rpc.details(0).UnpackTo(&detail)) {
    return MakeError(std::move(detail));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace kernix::server
