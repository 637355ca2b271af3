// SPDX-License-Identifier: Apache-2.0
#include "common/base/error.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/cord.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix {
namespace {

constexpr char kPayloadUrl[] = "type.googleapis.com/kernix.v1.ErrorDetail";

absl::StatusCode CodeForKind(ErrorKind kind) {
  switch (kind) {
    case v1::ErrorDetail::INVALID_REQUEST:
    case v1::ErrorDetail::COMPILATION:
      return absl::StatusCode::kInvalidArgument;
    case v1::ErrorDetail::TOOLCHAIN:
    case v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN:
    case v1::ErrorDetail::LOAD:
    case v1::ErrorDetail::NOT_CACHED:
      return absl::StatusCode::kFailedPrecondition;
    case v1::ErrorDetail::REGISTRATION:
      return absl::StatusCode::kAlreadyExists;
    case v1::ErrorDetail::UNREACHABLE:
      return absl::StatusCode::kUnavailable;
    case v1::ErrorDetail::RESOURCE:
      return absl::StatusCode::kResourceExhausted;
    case v1::ErrorDetail::CANCELLED:
      return absl::StatusCode::kCancelled;
    default:
      return absl::StatusCode::kInternal;
  }
}

ErrorKind KindForCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return v1::ErrorDetail::INVALID_REQUEST;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDeadlineExceeded:
      return v1::ErrorDetail::RESOURCE;
    case absl::StatusCode::kUnavailable:
      return v1::ErrorDetail::UNREACHABLE;
    case absl::StatusCode::kCancelled:
      return v1::ErrorDetail::CANCELLED;
    default:
      return v1::ErrorDetail::INTERNAL;
  }
}

void MakeTextsValid(v1::ErrorDetail& detail) {
  for (std::string* text : {detail.mutable_message(), detail.mutable_compiler_output(), detail.mutable_command()}) {
    if (!IsValidUtf8(*text)) *text = ToValidUtf8(*text);
  }
}

std::optional<v1::ErrorDetail> PayloadOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  v1::ErrorDetail detail;
  if (!payload || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

absl::Status MakeBusyError(std::string_view message, std::chrono::milliseconds retry_after) {
  if (retry_after.count() == 0) retry_after = Jittered(std::chrono::seconds(1));
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::RESOURCE);
  detail.set_message(std::string(message));
  detail.set_retry_after_ms(static_cast<int32_t>(retry_after.count()));
  return MakeError(std::move(detail));
}

std::chrono::milliseconds Jittered(std::chrono::milliseconds longest) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::chrono::milliseconds(
      std::uniform_int_distribution<int64_t>(longest.count() / 2, longest.count())(random));
}

std::chrono::milliseconds RetryAfter(const absl::Status& status) {
  constexpr int64_t kLongest = 60'000;  // whatever a daemon says
  if (status.ok()) return {};
  return std::chrono::milliseconds(std::clamp<int64_t>(GetErrorDetail(status).retry_after_ms(), 0, kLongest));
}

absl::Status MakeError(ErrorKind kind, std::string_view message, absl::StatusCode code) {
  v1::ErrorDetail detail;
  detail.set_kind(kind);
  detail.set_code(static_cast<int>(code));
  detail.set_message(std::string(message));
  return MakeError(std::move(detail));
}

absl::Status MakeError(v1::ErrorDetail detail) {
  if (detail.code() == 0) detail.set_code(static_cast<int>(CodeForKind(detail.kind())));
  MakeTextsValid(detail);
  absl::Status status(static_cast<absl::StatusCode>(detail.code()), detail.message());
  status.SetPayload(kPayloadUrl, absl::Cord(detail.SerializeAsString()));
  return status;
}

v1::ErrorDetail GetErrorDetail(const absl::Status& status) {
  v1::ErrorDetail detail;
  if (std::optional<v1::ErrorDetail> payload = PayloadOf(status)) {
    detail = *std::move(payload);
  } else {
    detail.set_kind(KindForCode(status.code()));
  }
  // The status wins for code and message, because Annotate() may have changed the message.
  detail.set_message(PrintableLines(ToStd(status.message())));
  detail.set_code(static_cast<int>(status.code()));
  return detail;
}

ErrorKind KindOf(const absl::Status& status) { return GetErrorDetail(status).kind(); }

absl::Status Annotate(const absl::Status& status, std::string_view prefix) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), StrCat(prefix, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { annotated.SetPayload(url, payload); });
  return annotated;
}

}  // namespace kernix
