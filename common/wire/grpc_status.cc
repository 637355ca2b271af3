// SPDX-License-Identifier: Apache-2.0
#include "common/wire/grpc_status.h"

#include <optional>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/wire/rpc_status.pb.h"

namespace kernix {
namespace {

constexpr char kDaemonLost[] = "kernix/daemon-lost";

// The limit of headers applies to the percent-encoded text, which has three bytes for each non-ASCII byte, and the
// headers contain the message three times: twice inside the details.
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

std::optional<v1::ErrorDetail> DetailOf(const grpc::Status& status) {
  RpcStatus rpc;
  if (!rpc.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& any : rpc.details()) {
    v1::ErrorDetail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorDetail detail = GetErrorDetail(status);
  detail.set_message(Shorten(detail.message()));
  detail.clear_compiler_output();
  detail.clear_command();
  detail.clear_failed_command();
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), detail.message(),
                      MakeRpcStatus(detail).SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  std::optional<v1::ErrorDetail> detail = DetailOf(status);
  // gRPC and absl number their codes alike.
  absl::Status result = detail ? MakeError(*std::move(detail))
                               : absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                                              StrCat(what, ": ", status.error_message()));
  if (DaemonWasLost(status)) result.SetPayload(kDaemonLost, absl::Cord("1"));
  return result;
}

bool DaemonWasLost(const absl::Status& status) { return status.GetPayload(kDaemonLost).has_value(); }

bool DaemonWasLost(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return true;
    // gRPC's name for a broken connection depends on how far the call had progressed.
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::CANCELLED:
      return !DetailOf(status);
    default:
      return false;
  }
}

}  // namespace kernix
