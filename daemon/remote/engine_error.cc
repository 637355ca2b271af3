// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/engine_error.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kernix::remote {

namespace {

// The meaning of a code of an engine, of gRPC or of a proxy in front of the engine.
struct Meaning {
  ErrorKind kind;
  std::string advice;
};

std::string WhyUnreachable(const grpc::Status& status, const UpstreamOptions& options) {
  if (absl::StrContains(status.error_message(), "certificate verify failed")) {
    return StrCat("Its certificate is not signed by ",
                  options.ca_file.empty() ? std::string("an authority that this machine trusts: set ca_file")
                                          : StrCat("the authority in ", options.ca_file),
                  ", or has expired, or is for another host name.");
  }
  return "Is the engine running, and is this its address?";
}

Meaning MeaningOf(const grpc::Status& status, const UpstreamOptions& options) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return {v1::ErrorDetail::UNREACHABLE, WhyUnreachable(status, options)};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {v1::ErrorDetail::UNREACHABLE, "It took longer than the timeout allows."};
    case grpc::StatusCode::CANCELLED:
      return {v1::ErrorDetail::UNREACHABLE, "The connection broke."};
    case grpc::StatusCode::UNAUTHENTICATED:
      return {v1::ErrorDetail::INVALID_REQUEST,
              options.token_file.empty() ? "It wants a token: set token_file."
                                         : StrCat("Is the token in ", options.token_file,
                                                  " right, still valid, and wanted in this header (token_header = \"",
                                                  options.token_header, "\")?")};
    case grpc::StatusCode::PERMISSION_DENIED:
      return {v1::ErrorDetail::INVALID_REQUEST,
              "The token or the client certificate does not give the right to do so."};
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {v1::ErrorDetail::INVALID_REQUEST, StrCat("Does it have an instance '", options.instance, "'?")};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {v1::ErrorDetail::INVALID_REQUEST, "Does an engine of the Remote Execution API listen at this address?"};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {v1::ErrorDetail::RESOURCE, "It has no room for this, or too much to do."};
    case grpc::StatusCode::INTERNAL:
      return {v1::ErrorDetail::INTERNAL, options.address.starts_with("grpcs://") && options.certificate_file.empty()
                                             ? "Does it want a client certificate? Set certificate_file and key_file."
                                             : ""};
    default:
      return {v1::ErrorDetail::INTERNAL, ""};
  }
}

std::string WordsOf(const grpc::Status& status) {
  std::string code = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
  return status.error_message().empty() ? code : StrCat(code, ": ", status.error_message());
}

}  // namespace

absl::Status EngineError(const grpc::Status& status, const UpstreamOptions& options, std::string_view asked) {
  const std::string what = StrCat("the engine at ", options.address, " did not ", asked, " (", WordsOf(status), ")");
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return absl::NotFoundError(what);
  const Meaning meaning = MeaningOf(status, options);
  return MakeError(meaning.kind, meaning.advice.empty() ? what : StrCat(what, ". ", meaning.advice),
                   static_cast<absl::StatusCode>(status.error_code()));
}

namespace {

constexpr Duration kFirstPause{50};
constexpr int kGrowth = 4;

}  // namespace

bool MayWorkLater(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:  // of one try
    case grpc::StatusCode::CANCELLED:          // not by us: the caller looks at that first
      return true;
    case grpc::StatusCode::INTERNAL:  // a stream that broke in the middle
      return absl::StrContains(status.error_message(), "RST_STREAM");
    default:
      return false;
  }
}

std::optional<Duration> AskedPause(const grpc::Status& status) {
  google::rpc::Status rpc;
  if (!rpc.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& any : rpc.details()) {
    google::rpc::RetryInfo info;
    if (!any.UnpackTo(&info) || info.retry_delay().seconds() < 0 || info.retry_delay().nanos() < 0) continue;
    return std::chrono::seconds(std::min<int64_t>(info.retry_delay().seconds(), 86'400)) +
           Duration(info.retry_delay().nanos() / 1'000'000);
  }
  return std::nullopt;
}

Duration PauseBeforeRetry(int retry) {
  Duration longest = kFirstPause;
  for (int i = 1; i < retry; ++i) longest *= kGrowth;
  return Jittered(longest);
}

}  // namespace kernix::remote
