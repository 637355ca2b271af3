// SPDX-License-Identifier: Apache-2.0
#include "common/wire/call_status.h"

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

std::optional<v1::ErrorDetail> DetailOf(const std::string& details) {
  RpcStatus rpc;
  if (!rpc.ParseFromString(details)) return std::nullopt;
  for (const google::protobuf::Any& any : rpc.details()) {
    v1::ErrorDetail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

// gRPC's own words when a user's calls have all threads that kernixd lends them.
bool IsBusy(const CallStatus& status) {
  return status.code == absl::StatusCode::kResourceExhausted &&
         status.message.find("Threadpool Exhausted") != std::string::npos;
}

bool IsLost(absl::StatusCode code, bool answered) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return true;
    // The name for a broken connection depends on how far the call had progressed.
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kCancelled:
      return !answered;
    default:
      return false;
  }
}

}  // namespace

CallStatus ToCallStatus(const absl::Status& status) {
  if (status.ok()) return {};
  v1::ErrorDetail detail = GetErrorDetail(status);
  detail.set_message(Shorten(detail.message()));
  detail.clear_compiler_output();
  detail.clear_command();
  detail.clear_failed_command();
  return {status.code(), detail.message(), MakeRpcStatus(detail).SerializeAsString()};
}

absl::Status FromCallStatus(const CallStatus& status, std::string_view what) {
  if (status.code == absl::StatusCode::kOk) return absl::OkStatus();
  std::optional<v1::ErrorDetail> detail = DetailOf(status.details);
  if (!detail && IsBusy(status)) {
    return MakeBusyError(StrCat(what, " has as many calls of this user under way as it takes: wait for some of them"));
  }
  const bool lost = IsLost(status.code, detail.has_value());
  absl::Status result =
      detail ? MakeError(*std::move(detail)) : absl::Status(status.code, StrCat(what, ": ", status.message));
  if (lost) result.SetPayload(kDaemonLost, absl::Cord("1"));
  return result;
}

bool DaemonWasLost(const absl::Status& status) { return status.GetPayload(kDaemonLost).has_value(); }

}  // namespace kernix
