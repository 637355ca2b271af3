// SPDX-License-Identifier: Apache-2.0
#include "client/src/status_from_grpc.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include <optional>
#include <utility>

#include "daemon/base/error.h"
#include "daemon/base/strings.h"

namespace kernix {
namespace {

constexpr char kDaemonLost[] = "kernix/daemon-lost";

// The details are a google.rpc.Status, whose field 3 holds messages of any type. Not every distribution ships its proto
// file, so it is read by number.
constexpr int kDetailsField = 3;

std::optional<v1::ErrorDetail> DetailOf(const grpc::Status& status) {
  google::protobuf::UnknownFieldSet rpc_status;
  if (!rpc_status.ParseFromString(status.error_details())) return std::nullopt;
  for (int i = 0; i < rpc_status.field_count(); ++i) {
    const google::protobuf::UnknownField& field = rpc_status.field(i);
    if (field.number() != kDetailsField || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    google::protobuf::Any any;
    v1::ErrorDetail detail;
    if (any.ParseFromString(field.length_delimited()) && any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

}  // namespace

absl::Status StatusFromGrpc(const grpc::Status& status, std::string_view what) {
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
    // How gRPC names a connection that broke depends on how far the call had come.
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::CANCELLED:
      return !DetailOf(status);
    default:
      return false;
  }
}

}  // namespace kernix
